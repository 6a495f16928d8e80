"""What a build has to write again although its source is the same, so that it ends as a clean build does.

Sphinx writes a page when its source changed, or a file that it read. Three things more decide about a page: the
titles, anchors and order of all pages, which links and navigation show; the style sheets and scripts, whose digests
stand in its links; and what other pages say, where a page lists it. And a page with a warning is read again until
nothing is wrong with it: a second build must not pass because nothing changed. After a change of the extensions, all
pages are read again.
"""

from __future__ import annotations

import copy
import hashlib
import html
import json
import logging
import re
from collections import defaultdict
from collections.abc import Set as AbstractSet
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.builders.html import StandaloneHTMLBuilder
from sphinx.environment import BuildEnvironment
from sphinx.util.logging import WarningLogRecordTranslator

from _ext import DOCS, build
from _ext.claims import domain
from _ext.downloads.page_files import KINDS
from _ext.execution import fingerprint, status

_BOX = (
    '<div class="admonition error" role="alert"><p class="admonition-title">This page is broken</p>'
    "<pre>{}</pre></div>\n"
)


class SiteBuilder(StandaloneHTMLBuilder):
    """Sphinx's builder, which writes nothing where no page has to be written."""

    idle = False

    def prepare_writing(self, docnames: AbstractSet[str]) -> None:
        """Prepare for the pages."""
        super().prepare_writing(docnames)
        self.idle = not docnames

    def copy_assets(self) -> None:
        """Copy what the pages refer to."""
        if not self.idle:
            super().copy_assets()

    def finish(self) -> None:
        """Write what belongs to the pages."""
        if not self.idle:
            super().finish()


class Updates(logging.Handler):
    """What one build found out: its warnings by page, and what its pages depend on."""

    def __init__(self, app: Sphinx):
        super().__init__(logging.WARNING)
        self.app = app
        self.translator: logging.Filter = WarningLogRecordTranslator(app)
        self.texts: dict[str, dict[str, None]] = defaultdict(dict)
        self.generated: set[str] = set()
        self.depends: dict[str, str] = {}
        self.extensions = hashlib.sha256(repr(fingerprint.sources(DOCS / "_ext")).encode()).hexdigest()
        logging.getLogger("sphinx").addHandler(self)

    @property
    def _file(self) -> Path:
        return Path(self.app.doctreedir, f"{self.app.builder.name}.json")

    def _before(self) -> dict:
        return json.loads(self._file.read_text("utf-8")) if self._file.exists() else {}

    def emit(self, record: logging.LogRecord) -> None:
        """Note a warning that says where it belongs."""
        record = copy.copy(record)  # the filter changes it
        self.translator.filter(record)
        place = str(getattr(record, "location", None) or "")
        if page := self.app.env.path2doc(re.sub(r"(:\d*)*$", "", place)):
            line = re.search(r"\d+$", place)
            self.texts[page][
                f"{f'line {line[0]}: ' if line else ''}{logging.LogRecord.getMessage(record)}"
            ] = None

    def show(self, _app: Sphinx, page: str, _template: str, context: dict, doctree: object) -> None:
        """Put the warnings above the text of a page, in a preview."""
        if doctree is None:
            self.generated.add(page)
        elif self.app.config.guide_preview and (texts := self.texts.get(page)):
            context["body"] = _BOX.format(html.escape("\n\n".join(texts))) + context["body"]

    def broken(
        self,
        _app: Sphinx,
        env: BuildEnvironment,
        _added: AbstractSet,
        _changed: AbstractSet,
        _removed: AbstractSet,
    ) -> list[str]:
        """Return the pages that the last build warned of, or all if it had other extensions."""
        before = self._before()
        if before.get("extensions") != self.extensions:
            return sorted(env.all_docs)
        return [page for page in before.get("broken", ()) if page in env.all_docs]

    def outdated(self, app: Sphinx, env: BuildEnvironment) -> list[str]:
        """Return the pages to write again for what is said elsewhere, or read by another builder."""
        if not isinstance(app.builder, StandaloneHTMLBuilder):
            return []
        contents = sorted((page, toc.pformat()) for page, toc in env.tocs.items())
        objects = [sorted(one.get_objects()) for one in env.domains.sorted()]
        site = [
            contents,
            objects,
            sorted(env.toctree_includes.items()),
            fingerprint.sources(DOCS / "_static"),
        ]
        cited = sorted((page, sorted(claims)) for page, claims in domain.of(env).citations.items())
        facts = {"": site, domain.LEDGER: cited, status.PAGE: status.rows(app)}
        self.depends = {page: hashlib.sha256(repr(said).encode()).hexdigest() for page, said in facts.items()}
        before = self._before().get("depends", {})
        changed = {page for page, digest in self.depends.items() if before.get(page) != digest}
        if "" in changed:
            return sorted(env.all_docs)
        return sorted(page for page in env.all_docs if page in changed or _is_older(app.builder, page))

    def finish(self, app: Sphinx, failure: Exception | None) -> None:
        """Remember what was found, and remove the files of pages that are gone."""
        if failure:
            return
        found = {"broken": sorted(self.texts), "depends": self.depends, "extensions": self.extensions}
        self._file.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
        if build.is_site(app) and not getattr(app.builder, "idle", False):
            kept = app.env.found_docs | self.generated
            for path in Path(app.outdir).rglob("*.html"):
                page = path.relative_to(app.outdir).with_suffix("").as_posix()
                if page not in kept and not page.startswith(("_", f"{domain.LEDGER}-")):
                    for ending in (".html", ".pdf", *KINDS):
                        path.with_suffix(ending).unlink(missing_ok=True)


def _is_older(builder: StandaloneHTMLBuilder, page: str) -> bool:
    """Return whether a page was written before it was read last."""
    written, read = builder.get_output_path(page), builder.doctreedir / f"{page}.doctree"
    return written.exists() and written.stat().st_mtime < read.stat().st_mtime
