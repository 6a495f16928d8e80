"""The verdicts of other devices than the releases were recorded on: a column each in docs/_data/claims.json.

A column is a kind of device, a count and a JAX release. The verdicts of a claim stay as long as its experiment
does, which `digest` tells; a space stands where there is none.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

SHORT = {"holds": "+", "does not hold": "-", "measured": "~", "not applicable": "0"}
_MADE_ON = ("device", "count", "jax", "python", "numpy")
_DIGITS = 8  # of a digest: they tell a thousand experiments apart


class MergeError(Exception):
    """The records do not make one document."""


def short(digest: str) -> str:
    """Return as much of a digest as is recorded."""
    return digest[:_DIGITS]


def version_key(version: str) -> tuple[int, ...]:
    """Return a version as numbers, for sorting.

    Example:
        >>> version_key("0.10.2") > version_key("0.9.2")
        True
    """
    return tuple(int(part) for part in version.split("."))


def name(made_on: dict) -> str:
    """Return the name of a column, under which its reasons stand.

    Example:
        >>> name({"device": "cpu", "count": 8, "jax": "0.10.2"})
        '8 cpu, JAX 0.10.2'
    """
    return f"{made_on['count']} {made_on['device']}, JAX {made_on['jax']}"


def read(path: Path) -> dict:
    """Return a record: a file of its own, or the one in the results that `tools/run_here.py` packs."""
    try:
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as packed:
                return json.loads(packed.read("claims.json"))
        return json.loads(path.read_text("utf-8"))
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise MergeError(
            f"{path} is neither a record of claims nor the results.zip of tools/run_here.py: {error}"
        ) from None


def check(record: dict, digests: dict[str, str]) -> list[str]:
    """Return the claims whose experiments are others now; refuse a record that does not say on what it was made."""
    if not isinstance(record, dict) or not record.get("claims"):
        raise MergeError("the record has no claims: make it with `nox -s versions -- --device 8`.")
    if missing := [key for key in _MADE_ON if not record.get(key)]:
        raise MergeError(
            f"the record doesn't say on what it was made: it lacks {', '.join(missing)}. Make it again with this "
            "version of the project: `nox -s versions -- --device 8`, or `python tools/run_here.py` on the machine."
        )
    claims = record["claims"].items()
    return sorted(claim for claim, found in claims if found.get("digest") != digests.get(claim))


def add(document: dict, record: dict) -> dict:
    """Return the document with the record as a column; what the record lacks stays as it is."""
    made_on = {key: record[key] for key in _MADE_ON}
    column = name(made_on)
    columns = [one for one in document.get("devices", []) if name(one) != column]
    columns.append(made_on)
    columns.sort(key=lambda one: (one["device"], one["count"], version_key(one["jax"])))
    rows = {}
    for claim in document["claims"]:
        digest, verdicts = _verdicts(document, claim)
        if found := record["claims"].get(claim):
            if digest != (digest := short(found["digest"])):
                verdicts = {}
            verdicts[column] = (SHORT[found["verdict"]], found["reason"])
        rows[claim] = (digest, verdicts)
    return _with(document, columns, rows)


def carry(old: dict, document: dict, digests: dict[str, str]) -> dict:
    """Return the document with the columns of the old one, but for claims whose experiment changed since."""
    rows = {}
    for claim in document["claims"]:
        digest, verdicts = _verdicts(old, claim)
        same = digest == short(digests.get(claim, digest))
        rows[claim] = (digest, verdicts if same else {})
    return _with(document, old.get("devices", []), rows)


def _verdicts(document: dict, claim: str) -> tuple[str, dict[str, tuple[str, str]]]:
    """Return the digest of a claim, and its verdict and reason by the name of the column."""
    known = document["claims"].get(claim, {})
    reasons = known.get("reasons", {})
    pairs = zip(map(name, document.get("devices", [])), known.get("devices", ""), strict=False)
    return known.get("digest", ""), {
        column: (short, reasons.get(column, "")) for column, short in pairs if short != " "
    }


def _with(document: dict, columns: list[dict], rows: dict[str, tuple[str, dict]]) -> dict:
    """Return the document with these columns, less those that are empty."""
    columns = [one for one in columns if any(name(one) in verdicts for _, verdicts in rows.values())]
    names = [name(one) for one in columns]
    claims = {}
    for claim, recorded in document["claims"].items():
        digest, verdicts = rows[claim]
        kept = {key: value for key, value in recorded.items() if key not in ("devices", "digest", "reasons")}
        reasons = {key: text for key, text in recorded.get("reasons", {}).items() if ", JAX " not in key}
        reasons |= {column: verdicts[column][1] for column in names if verdicts.get(column, ("", ""))[1]}
        if verdicts:
            kept["devices"] = "".join(verdicts.get(column, " ")[0] for column in names).rstrip()
            kept["digest"] = digest
        claims[claim] = kept | ({"reasons": reasons} if reasons else {})
    made = {"releases": document["releases"], "devices": columns, "claims": claims}
    return made if columns else {key: made[key] for key in ("releases", "claims")}
