"""Claims: sentences of the guide, each tied to the experiment that proves it and to its recorded verdicts."""

from __future__ import annotations

from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

from _ext import DATA, build

from . import domain, experiments, proofs, tables, topic_pages, tutorials


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the domain, its role and the directives of the recorded facts with Sphinx."""
    app.add_config_value("guide_claims", str(experiments.FOLDER), "env", [str])
    app.add_config_value("guide_claims_data", str(DATA), "env", [str])
    app.add_domain(domain.ClaimsDomain)
    app.add_role("claim", domain.ClaimRole())
    app.connect("env-get-outdated", domain.files_changed)
    app.add_node(tables.claim_links)
    app.add_directive("claims-table", tables.ClaimsTable)
    app.add_directive("recorded", tables.Recorded)
    app.add_directive("changes", tables.Changes)
    app.connect("doctree-resolved", tables.resolve)
    app.add_node(tutorials.place_link)
    app.add_directive("five-tutorials", tutorials.FiveTutorials)
    app.connect("doctree-resolved", tutorials.resolve)
    app.connect("html-page-context", proofs.tell)
    app.connect("build-finished", proofs.write)
    app.connect("doctree-resolved", topic_pages.shorten)
    app.connect("html-collect-pages", topic_pages.pages)
    app.connect("html-page-context", topic_pages.lighten)
    app.add_css_file("ledger.css")
    app.add_js_file("proofs.js", loading_method="defer")
    app.add_js_file("release.js", loading_method="defer")
    app.add_js_file("ledger.js", loading_method="defer")
    return {"env_version": domain.ClaimsDomain.data_version, **build.PARALLEL_SAFE}
