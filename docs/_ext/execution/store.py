"""The outputs of executed pages: one JSON file for each page, complete or absent."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

# Outputs of other environments that are kept, so that switching between two Pythons re-runs nothing.
_KEPT_ENVIRONMENTS = 4


class StoreError(ExtensionError):
    """Outputs cannot be saved; Sphinx shows it in one line."""


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Turn an error of the file system into one sentence with the folder."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"the outputs of the pages cannot be written to {folder}: {error.strerror or error}. "
            "Free some space there, or name another folder as `guide_store` in docs/conf.py."
        ) from None


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
        return self._read(self._path(page))

    @staticmethod
    def _read(path: Path) -> dict | None:
        try:
            record = json.loads(path.read_text("utf-8"))
        except (FileNotFoundError, json.JSONDecodeError, UnicodeDecodeError):
            return None
        return record if isinstance(record, dict) else None

    def saved(self, page: str) -> float:
        """Return when the record of `page` was saved, in seconds since 1970."""
        return self._path(page).stat().st_mtime

    def last_seconds(self, page: str) -> list[float]:
        """Return the seconds that the cells of `page` took when it last ran, in whatever environment."""
        paths = (
            path
            for folder in self.folder.parent.glob("*")
            if (path := folder / self._path(page).name).exists()
        )
        newest = max(paths, key=lambda path: path.stat().st_mtime, default=self._path(page))
        record = self._read(newest)
        return record["seconds"] if record else []

    def save(self, page: str, record: dict) -> None:
        """Save `record` so that a reader sees either all of it or the one before.

        Raises:
            StoreError: The folder cannot be written to, or the disk is full.
        """
        path = self._path(page)
        with _writing(path.parent):
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(
                "w", dir=path.parent, suffix=".partial", delete=False, encoding="utf-8"
            ) as file:
                partial = Path(file.name)
                try:
                    json.dump(record, file)
                    file.flush()
                    os.fsync(file.fileno())
                except OSError:
                    partial.unlink()
                    raise
            partial.replace(path)

    def discard_old_environments(self) -> None:
        """Remove the outputs of all but the few environments used last."""
        with _writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            os.utime(self.folder)
        others = [f for f in self.folder.parent.iterdir() if f.is_dir()]
        for folder in sorted(others, key=lambda f: f.stat().st_mtime, reverse=True)[_KEPT_ENVIRONMENTS:]:
            shutil.rmtree(folder, ignore_errors=True)

    def _path(self, page: str) -> Path:
        return self.folder / (page.replace("/", "--") + ".json")
