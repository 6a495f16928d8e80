"""Merges the records of several JAX releases into docs/_data/claims.json, and says what flipped.

    python tests/claims/merge.py FOLDER [--newest]

With --newest nothing is merged: newest.json is compared with the last release in docs/_data/claims.json. What
changed is written to changes.md in FOLDER, and is an error.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

_DATA = Path(__file__).resolve().parents[2] / "docs" / "_data" / "claims.json"
_SHORT = {"holds": "+", "does not hold": "-", "not applicable": "0"}


class MergeError(Exception):
    """The records do not make one document."""


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
    digests = {name: file["digest"] for name, file in records[-1]["files"].items()}
    for record in records:
        others = {name: file["digest"] for name, file in record["files"].items()}
        if different := sorted(name for name in digests | others if digests.get(name) != others.get(name)):
            raise MergeError(
                f"the records of JAX {record['jax']} and {records[-1]['jax']} are of different experiments in "
                f"{', '.join(different)}: run `nox -s versions` again, which repeats only these."
            )
    verdicts = [{k: v for file in r["files"].values() for k, v in file["verdicts"].items()} for r in records]
    claims = {}
    for name in sorted(verdicts[-1]):
        row = [of[name] for of in verdicts]
        reasons = {r["jax"]: reason for r, (_, reason) in zip(records, row, strict=True) if reason}
        claims[name] = {"verdicts": "".join(_SHORT[verdict] for verdict, _ in row)}
        if reasons:
            claims[name]["reasons"] = reasons
    releases = [{key: record[key] for key in ("jax", "python", "numpy")} for record in records]
    return {"releases": releases, "experiments": digests, "claims": claims}


def flips(document: dict) -> dict[str, list[str]]:
    """Return, for each release but the first, the claims whose verdict differs from the release before."""
    versions = [release["jax"] for release in document["releases"]]
    return {
        version: [n for n, claim in document["claims"].items() if len(set(claim["verdicts"][i : i + 2])) > 1]
        for i, version in enumerate(versions[1:])
    }


def changes(newest: dict, document: dict) -> list[str]:
    """Return a line for each claim whose verdict on the newest JAX is another one than the last recorded."""
    words = {short: verdict for verdict, short in _SHORT.items()}
    last = {name: words[claim["verdicts"][-1]] for name, claim in document["claims"].items()}
    found = []
    for file in newest["files"].values():
        for name, (verdict, reason) in file["verdicts"].items():
            if verdict != last.get(name, "holds"):
                found.append(f"- `{name}`: {last.get(name, 'not recorded')} → {verdict}. {reason}".rstrip())
    return sorted(found)


def dump(document: dict) -> str:
    """Return the document as JSON with one claim a line, which a diff shows well."""
    parts = []
    for key, value in document.items():
        rows = (
            value if isinstance(value, list) else [f"{json.dumps(k)}: {_line(v)}" for k, v in value.items()]
        )
        body = ",\n".join(row if isinstance(row, str) else _line(row) for row in rows)
        opening, closing = "[]" if isinstance(value, list) else "{}"
        parts.append(f"{json.dumps(key)}: {opening}\n{body}\n{closing}")
    return "{" + ",\n".join(parts) + "}\n"


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _compare(folder: Path) -> int:
    newest = json.loads((folder / "newest.json").read_text("utf-8"))
    document = json.loads(_DATA.read_text("utf-8"))
    last, found = document["releases"][-1]["jax"], changes(newest, document)
    print(f"claims: JAX {newest['jax']} changes {len(found)} of them against JAX {last}.", *found, sep="\n")
    report = folder / "changes.md"
    report.unlink(missing_ok=True)
    if found:
        head = f"JAX {newest['jax']} changes these claims, as recorded on JAX {last}:\n\n"
        report.write_text(head + "\n".join(found) + "\n", "utf-8")
    return int(bool(found))


def _merge(folder: Path) -> int:
    paths = [path for path in folder.glob("*.json") if path.stem != "newest"]
    document = merge([json.loads(path.read_text("utf-8")) for path in paths])
    had = len(json.loads(_DATA.read_text("utf-8"))["releases"]) if _DATA.exists() else 0
    if len(paths) < had:
        raise MergeError(
            f"docs/_data/claims.json has {had} releases and only {len(paths)} were run here, so it stays as it is. "
            "Run `nox -s versions` without a release; to drop one for good, remove the file first."
        )
    _DATA.parent.mkdir(exist_ok=True)
    _DATA.write_text(dump(document), "utf-8")
    for version, names in flips(document).items():
        print(f"{version}: {len(names)} verdicts differ from the release before")
    print(f"claims: {len(document['claims'])} on {len(paths)} releases, in docs/_data/claims.json")
    return 0


def main(arguments: list[str]) -> int:
    """Write the document, or compare with it; return 1 when that failed or the newest JAX changed a claim."""
    folder = Path(arguments[0])
    try:
        return _compare(folder) if "--newest" in arguments else _merge(folder)
    except MergeError as error:
        print(f"claims: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
