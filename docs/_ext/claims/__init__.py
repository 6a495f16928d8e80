"""Claims: sentences of the guide, each tied to the experiment that proves it and to its recorded verdicts."""

from __future__ import annotations

from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

from _ext import DATA, build

from . import domain, experiments, tables, tutorials


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the domain, its role and the directives of the recorded facts with Sphinx."""
    app.add_config_value("guide_claims", str(experiments.FOLDER), "env", [str])
    app.add_config_value("guide_claims_data", str(DATA), "env", [str])
    app.add_domain(domain.ClaimsDomain)
    app.add_role("claim", domain.ClaimRole())
    app.connect("env-updated", domain.rewrite_ledger)
    tables.setup(app)
    tutorials.setup(app)
    return {"env_version": domain.ClaimsDomain.data_version, **build.PARALLEL_SAFE}
