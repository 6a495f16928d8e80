"""The programs of the error index: an example or a repair, the imports it needs, and the error that it raised.

Two examples of one entry may raise different classes, and another JAX another class. So those that raise run
when the site is built, and each program names what it raised.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import jax
from sphinx.application import Sphinx
from sphinx.util import logging

from jitguide._errors.entries import catalogue
from jitguide._errors.entry import Entry

from . import ladder, program_runner, program_text
from .program_text import FAILS, Origin

if TYPE_CHECKING:
    from .programs import program

_log = logging.getLogger(__name__)
_RECORD = "programs/entries"
_PRELUDE = "import jax\nimport jax.numpy as jnp\nimport numpy as np"


def text(code: str, devices: int, origin: Origin) -> str:
    r"""Return the program of a piece of code of an entry, without what it raises.

    Example:
        >>> print(text("jnp.ones(3)", 1, Origin("Errors", "reference/errors", "0.12.0")))
        # From "Errors" (reference/errors), JAX 0.12.0. Needs: jax.
        <BLANKLINE>
        import jax.numpy as jnp
        <BLANKLINE>
        # --- this block
        jnp.ones(3)
        <BLANKLINE>
    """
    settings = f'\njax.config.update("jax_num_cpu_devices", {devices})' if devices > 1 else ""
    prelude = program_text.used_imports(_PRELUDE, f"{settings}\n{code}")
    return program_text.assemble(f"{prelude}{settings}", code.strip("\n"), origin)


def key(code: str, devices: int) -> str:
    """Return a digest of what decides how a piece of code of an entry ends."""
    return hashlib.sha256(repr((code.strip("\n"), devices)).encode()).hexdigest()


def run(app: Sphinx) -> None:
    """Run what was not yet run with this JAX, keep what it raised, and tell of what the catalogue has wrong."""
    pages = (Path(app.env.doc2path(name)) for name in app.env.all_docs)
    if not any("{error-index}" in page.read_text("utf-8") for page in pages if page.suffix == ".md"):
        return
    rules = ladder.rules() + jax.__version__
    kept = app.guide_store.latest(_RECORD) or {}
    raised = kept.get("raised", {}) if kept.get("rules") == rules else {}
    jobs, wanted = [], {}
    for entry, code, fails in _pieces():
        name = key(code, entry.devices)
        if name not in raised:
            jobs.append(ladder.job(name, text(code, entry.devices, Origin("", "", "")), shown=False))
            wanted[name] = (entry.key, fails)
    outcomes = program_runner.run(jobs)
    for name, outcome in outcomes.items():
        where, fails = wanted[name]
        if bool(outcome.error) == fails:
            raised[name] = outcome.error
        else:
            _log.warning(
                "error catalogue: code of %r ended with %s: %s", where, outcome.error, outcome.message
            )
    if jobs:
        app.guide_store.save(_RECORD, {"key": rules, "rules": rules, "raised": raised})


def _pieces() -> Iterable[tuple[Entry, str, bool]]:
    """Yield each piece of code of the catalogue that is to raise: which class may differ from JAX to JAX."""
    for entry in catalogue():
        yield from ((entry, code, True) for code in entry.examples if entry.error)


def complete(app: Sphinx, found: Iterable[program]) -> None:
    """Let programs of the error index say what they raise."""
    raised = (app.guide_store.latest(_RECORD) or {"raised": {}})["raised"]
    for program in found:
        if error := raised.get(program.get("entry")):
            first, _, rest = program["text"].partition("\n")
            program["text"] = f"{first}\n{FAILS}{error}.\n{rest}"
