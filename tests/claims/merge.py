"""Merges the records of several JAX releases into docs/_data/claims.json, and says what flipped.

    python tests/claims/merge.py FOLDER [--compare-only]

With --compare-only nothing is written: the newest release is compared with the newest one recorded, and a claim
that changed its verdict is an error.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

_DATA = Path(__file__).resolve().parents[2] / "docs" / "_data" / "claims.json"
_SHORT = {"holds": "+", "does not hold": "-", "not applicable": "0"}


def version_key(version: str) -> tuple[int, ...]:
    """Return a version as numbers, for sorting.

    Example:
        >>> version_key("0.10.2") > version_key("0.9.2")
        True
    """
    return tuple(int(part) for part in version.split("."))


def merge(records: list[dict]) -> dict:
    """Return one document: the releases in order, and for each claim its verdict on each of them."""
    records = sorted(records, key=lambda r: version_key(r["jax"]))
    names = sorted({name for r in records for name in r["verdicts"]})
    claims = {}
    for name in names:
        verdicts = [r["verdicts"].get(name, ["not applicable", "not tried"]) for r in records]
        reasons = {r["jax"]: reason for r, (_, reason) in zip(records, verdicts, strict=True) if reason}
        claims[name] = {"verdicts": "".join(_SHORT[verdict] for verdict, _ in verdicts), "reasons": reasons}
    releases = [{key: r[key] for key in ("jax", "python", "numpy")} for r in records]
    return {"releases": releases, "claims": claims}


def flips(document: dict) -> dict[str, list[str]]:
    """Return, for each release but the first, the claims whose verdict differs from the release before."""
    versions = [release["jax"] for release in document["releases"]]
    return {
        version: [name for name, c in document["claims"].items() if c["verdicts"][i] != c["verdicts"][i - 1]]
        for i, version in enumerate(versions)
        if i
    }


def main(arguments: list[str]) -> int:
    """Write the document, or compare with it; return 1 when the newest JAX changed a claim."""
    folder = Path(arguments[0])
    records = [json.loads(path.read_text("utf-8")) for path in folder.glob("*.json")]
    if not records:
        print(f"claims: no record in {folder.name}: run `nox -s versions`.", file=sys.stderr)
        return 1
    if "--compare-only" in arguments:
        newest = max(records, key=lambda r: version_key(r["jax"]))
        changed = [f"{name}: {reason}" for name, (verdict, reason) in newest["verdicts"].items() if verdict == "does not hold"]
        print(f"claims: on JAX {newest['jax']} {len(changed)} of {len(newest['verdicts'])} do not hold", *changed, sep="\n  ")
        return 1 if changed else 0
    document = merge(records)
    _DATA.parent.mkdir(exist_ok=True)
    _DATA.write_text(json.dumps(document, indent=0, sort_keys=True) + "\n", "utf-8")
    for version, names in flips(document).items():
        print(f"{version}: {len(names)} verdicts differ from the release before")
    print(f"claims: {len(document['claims'])} on {len(document['releases'])} releases, in docs/_data/claims.json")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
