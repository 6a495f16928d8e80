"""The programs of the error index: an example or a fix, the imports it needs, and the error that it raised.

Two examples of one entry may raise different classes, and another JAX another class. So those that raise run
when the site is built, and each program names what it raised.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from sphinx.application import Sphinx
from sphinx.util import logging

from _ext import build
from _ext.execution.store import Store

from . import candidates, render, runner
from .node import program
from .render import FAILS, Origin

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
    prelude = render.used_imports(_PRELUDE, f"{settings}\n{code}")
    return render.assemble(f"{prelude}{settings}", code.strip("\n"), origin)


def key(code: str, devices: int) -> str:
    """Return a digest of what decides how a piece of code of an entry ends."""
    return hashlib.sha256(repr((code.strip("\n"), devices)).encode()).hexdigest()


def run(app: Sphinx) -> None:
    """Run the examples that were not yet run with this JAX, store what they raise, and warn of those that do not."""
    if not any("{error-index}" in app.env.doc2path(name).read_text("utf-8") for name in app.env.all_docs):
        return
    rules = candidates.rules() + build.JAX
    stored = Store.of(app).latest(_RECORD) or {}
    if stored.get("rules") == rules and stored["complete"]:
        return
    from jitguide._errors.entries import catalogue  # imports JAX, which a build without changes does not need

    raised = stored.get("raised", {}) if stored.get("rules") == rules else {}
    jobs, wanted = [], {}
    pieces = ((entry, code) for entry in catalogue() if entry.error for code in entry.examples)
    for entry, code in pieces:
        name = key(code, entry.devices)
        if name not in raised:
            jobs.append(candidates.job(name, text(code, entry.devices, Origin("", "", "")), shown=False))
            wanted[name] = entry.key
    outcomes = runner.run(jobs)
    for name, outcome in outcomes.items():
        if outcome.error:
            raised[name] = outcome.error
        else:
            _log.warning("error catalogue: an example of %r raises no error.", wanted[name])
    complete = all(outcome.error for outcome in outcomes.values())
    Store.of(app).save(_RECORD, {"key": rules, "rules": rules, "raised": raised, "complete": complete})


def complete(app: Sphinx, found: Iterable[program]) -> None:
    """Write into programs of the error index what they raise."""
    raised = (Store.of(app).latest(_RECORD) or {"raised": {}})["raised"]
    for one in found:
        if error := raised.get(one.get("entry")):
            first, _, rest = one["text"].partition("\n")
            one["text"] = f"{first}\n{FAILS}{error}.\n{rest}"
