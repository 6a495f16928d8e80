"""One small file for each cited claim, which a page loads to show the proof of a sentence in place.

The files are scripts that hand over their data: requests do not work in a folder on disk, scripts do.
"""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import Any

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
from sphinx.application import Sphinx

from _ext import build

from . import domain, experiments
from .recording import WORDS, Recording, joined

FOLDER = "_static/claims"
LARGEST = 15 * 1024  # bytes; what a click loads on a slow line within the time of a glance


def write(app: Sphinx, failure: Exception | None) -> None:
    """Write the files whose content changed."""
    if failure or not build.is_site(app) or getattr(app.builder, "idle", False):
        return
    claims = domain.of(app.env)
    folder = Path(app.outdir, FOLDER)
    source = Path(__file__).read_text("utf-8")
    with build.making(app, "proofs", source, claims.claims, claims.recording) as new:
        if new or not folder.exists():
            folder.mkdir(parents=True, exist_ok=True)
            _write_all(folder, claims)


def _write_all(folder: Path, claims: domain.ClaimsDomain) -> None:
    files = {claim.id: script(claim, claims.recording) for claim in claims.claims.values()}
    files["releases"] = f"GuideRelease.take({_json(differing(claims.recording))});\n"
    for name, text in files.items():
        path = folder / f"{name}.js"
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def differing(recorded: Recording) -> dict[str, Any]:
    """Return the releases, and the verdicts of each claim that was not seen to hold on one of them.

    Where a release could not run the experiment, what other devices gave on the same release counts.
    """
    rows = {}
    for name, row in recorded.verdicts.items():
        found = recorded.elsewhere.get(name, {}).items()
        there = {one.jax: short for one, (short, _) in found if short != "0"}
        told = zip(recorded.releases, row, strict=False)
        rows[name] = "".join(there.get(jax, short) if short == "0" else short for jax, short in told)
    return {
        "releases": recorded.releases,
        "claims": {name: row for name, row in rows.items() if set(row) & {"-", "0"}},
    }


def tell(app: Sphinx, _page: str, _template: str, context: dict, _doctree: object) -> None:
    """Give the template the releases to choose from."""
    context["guide_releases"] = domain.of(app.env).recording.releases if build.is_site(app) else ()


def script(claim: experiments.Claim, recorded: Recording) -> str:
    """Return the file of one claim."""
    found = data(claim, recorded)
    text = _call(claim.id, found)
    if len(text.encode()) > LARGEST:  # colours take most of it
        text = _call(claim.id, found | {"code": "", "plain": claim.shown})
    return text


def _call(name: str, found: dict[str, Any]) -> str:
    return f"GuideProofs.take({json.dumps(name)},{_json(found)});\n"


def _json(found: dict[str, Any]) -> str:
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"))


def data(claim: experiments.Claim, recorded: Recording) -> dict[str, Any]:
    """Return what is shown of a claim: its sentence, its verdicts by release, the devices, its experiment."""
    row = recorded.verdicts.get(claim.id, "")
    reasons = recorded.reasons.get(claim.id, {})
    verdicts = [
        [release, short, WORDS[short], reasons.get(release, "")]
        for release, short in zip(recorded.releases, row, strict=False)
    ]
    there = recorded.elsewhere.get(claim.id, {}).items()
    elsewhere = [
        [name, joined([one.jax for one, _ in group]), short, WORDS[short], reason]
        for (name, short, reason), group in groupby(there, key=lambda found: (found[0].name, *found[1]))
    ]
    seen = [recorded.in_words(claim.id), recorded.elsewhere_in_words(claim.id), claim.rests_on]
    coloured = highlight(claim.shown, PythonLexer(), HtmlFormatter(nowrap=True))
    return {
        "sentence": claim.sentence,
        "verdicts": verdicts,
        "devices": elsewhere,
        "seen": " ".join(filter(None, seen)),
        "code": coloured,
        "file": f"tests/claims/{claim.path.name}",
    }
