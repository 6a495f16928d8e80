"""The outputs of executed pages: one JSON file for each page, complete or absent."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path

from sphinx.application import Sphinx

# Outputs of other environments that are kept, so that switching between two Pythons re-runs nothing.
_KEPT_ENVIRONMENTS = 4


class Store:
    """Executed pages of one environment.

    Args:
        root: Folder of all environments; it must lie outside the source folder of the site.
        fingerprint: Digest of the environment.
    """

    def __init__(self, root: Path, fingerprint: str):
        self.folder = root / fingerprint[:16]

    @classmethod
    def of(cls, app: Sphinx) -> Store:
        """Return the store that the settings of a build name."""
        return cls(Path(app.config.guide_store).resolve(), app.config.guide_fingerprint)

    def load(self, page: str, key: str) -> dict | None:
        """Return the record that was saved for `page` under `key`, or None when the page must be executed."""
        record = self.latest(page)
        return record if record and record.get("key") == key else None

    def latest(self, page: str) -> dict | None:
        """Return the newest record of `page`, whatever its key."""
        try:
            record = json.loads(self._path(page).read_text("utf-8"))
        except (FileNotFoundError, json.JSONDecodeError, UnicodeDecodeError):
            return None
        return record if isinstance(record, dict) else None

    def save(self, page: str, record: dict) -> None:
        """Save `record` so that a reader sees either all of it or the one before."""
        path = self._path(page)
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", dir=path.parent, suffix=".partial", delete=False, encoding="utf-8"
        ) as file:
            json.dump(record, file, sort_keys=True)
            file.flush()
            os.fsync(file.fileno())
        Path(file.name).replace(path)

    def discard_old_environments(self) -> None:
        """Remove the outputs of all but the few environments used last."""
        self.folder.mkdir(parents=True, exist_ok=True)
        os.utime(self.folder)
        others = [f for f in self.folder.parent.iterdir() if f.is_dir()]
        for folder in sorted(others, key=lambda f: f.stat().st_mtime, reverse=True)[_KEPT_ENVIRONMENTS:]:
            shutil.rmtree(folder, ignore_errors=True)

    def _path(self, page: str) -> Path:
        return self.folder / (page.replace("/", "--") + ".json")
