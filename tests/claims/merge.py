"""Merges the records of several JAX releases into docs/_data/claims.json, and says what flipped.

    python tests/claims/merge.py FOLDER [--some | --newest]
    python tests/claims/merge.py --device RECORD... [--unchanged]

With --some the records are of a few claims, and all other claims keep the verdicts that they have.
With --device each record becomes a column of its own beside the releases; --unchanged leaves out what it tells of
experiments that have changed since.
With --newest nothing is merged: newest.json is compared with the last release in docs/_data/claims.json. What
changed is written to changes.md in FOLDER, and is an error.
"""

from __future__ import annotations

import json
import sys
from itertools import groupby
from pathlib import Path

sys.path.append(str(Path(__file__).parent))  # for the modules beside this one, also where it is imported
import device_columns
from device_columns import SHORT, MergeError, version_key
from digests import digests_of_all

_DATA = Path(__file__).resolve().parents[2] / "docs" / "_data" / "claims.json"
_MADE_ON = ("jax", "python", "numpy", "device", "count")


def merge(records: list[dict]) -> dict:
    """Return one document: the releases in order, and for each claim its verdict on each of them."""
    records = sorted(records, key=lambda r: version_key(r["jax"]))
    digests = {name: claim["digest"] for name, claim in records[-1]["claims"].items()}
    for record in records:
        others = {name: claim["digest"] for name, claim in record["claims"].items()}
        if different := sorted(name for name in digests | others if digests.get(name) != others.get(name)):
            raise MergeError(
                f"the records of JAX {record['jax']} and {records[-1]['jax']} are of different experiments for "
                f"{', '.join(different)}: run `nox -s versions` again, which repeats only these."
            )
    claims = {}
    for name in sorted(digests):
        row = {record["jax"]: record["claims"][name] for record in records}
        claims[name] = {"verdicts": "".join(SHORT[claim["verdict"]] for claim in row.values())}
        if reasons := _reasons(row):
            claims[name]["reasons"] = reasons
    releases = [{key: record[key] for key in _MADE_ON} for record in records]
    return {"releases": releases, "claims": claims}


def _reasons(row: dict[str, dict]) -> dict[str, str]:
    """Return the reasons of a claim; one that several releases in a row share stands once, as 0.4.30..0.7.2."""
    found = {}
    for reason, group in groupby(row, key=lambda release: row[release]["reason"]):
        releases = list(group)
        if reason:
            found["..".join(dict.fromkeys((releases[0], releases[-1])))] = reason
    return found


def flips(document: dict) -> dict[str, list[str]]:
    """Return, for each release but the first, the claims that held until it or began to hold with it."""
    versions = [release["jax"] for release in document["releases"]]
    return {
        version: [n for n, c in document["claims"].items() if c["verdicts"][i : i + 2] in ("+-", "-+")]
        for i, version in enumerate(versions[1:])
    }


def changes(newest: dict, document: dict) -> list[str]:
    """Return a line for each claim whose verdict on the newest JAX is another one than the last recorded."""
    words = {short: verdict for verdict, short in SHORT.items()}
    last = {name: words[claim["verdicts"][-1]] for name, claim in document["claims"].items()}
    found = []
    for name, claim in newest["claims"].items():
        if claim["verdict"] != last.get(name, "holds"):
            was, now = last.get(name, "not recorded"), claim["verdict"]
            found.append(f"- `{name}`: {was} → {now}. {claim['reason']}".rstrip())
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


def _merge(folder: Path, some: bool) -> int:
    paths = [path for path in folder.glob("*.json") if path.stem != "newest"]
    document = merge([json.loads(path.read_text("utf-8")) for path in paths])
    old = _recorded()
    had = len(old["releases"])
    if some:
        if [r["jax"] for r in document["releases"]] != [r["jax"] for r in old["releases"]]:
            raise MergeError(
                "a few claims must be run on the releases of docs/_data/claims.json, all of them: "
                f"{', '.join(r['jax'] for r in old['releases'])}."
            )
        print(f"claims: {len(document['claims'])} recorded anew")
        claims = dict(sorted({**old["claims"], **document["claims"]}.items()))
        document = {"releases": old["releases"], "claims": claims}
    if len(paths) < had:
        raise MergeError(
            f"docs/_data/claims.json has {had} releases and only {len(paths)} were run here, so it stays as it is. "
            "Run `nox -s versions` without a release; to drop one for good, remove the file first."
        )
    document = device_columns.carry(old, document, _digests(paths))
    _DATA.parent.mkdir(exist_ok=True)
    _DATA.write_text(dump(document), "utf-8")
    for version, names in flips(document).items():
        print(f"{version}: {len(names)} claims began or ceased to hold")
    print(f"claims: {len(document['claims'])} on {len(paths)} releases, in docs/_data/claims.json")
    return 0


def _recorded() -> dict:
    return json.loads(_DATA.read_text("utf-8")) if _DATA.exists() else {"releases": [], "claims": {}}


def _digests(paths: list[Path]) -> dict[str, str]:
    """Return the digests of the experiments of these records."""
    records = [json.loads(path.read_text("utf-8")) for path in paths]
    return {name: claim["digest"] for record in records for name, claim in record["claims"].items()}


def _add_devices(paths: list[Path], unchanged: bool) -> int:
    document, digests = _recorded(), digests_of_all()
    for path in paths:
        record = device_columns.read(path)
        others = device_columns.check(record, digests)
        if others and not unchanged:
            raise MergeError(
                f"the record {path.name} is of other experiments than those in tests/claims for {len(others)} of its "
                f"{len(record['claims'])} claims ({', '.join(others[:5])}{', ...' if others[5:] else ''}). Record "
                "again on that machine, or leave these claims out with --unchanged."
            )
        record["claims"] = {name: c for name, c in record["claims"].items() if name not in others}
        document = device_columns.add(document, record)
        taken = {name: c for name, c in record["claims"].items() if name in document["claims"]}
        print(
            f"claims: {len(taken)} on {device_columns.name(record)}; experiments that changed: {len(others)}"
        )
        for name, claim in taken.items():
            if claim["verdict"] == "does not hold":
                print(f"does not hold there: {name}. {claim['reason']}")
    _DATA.write_text(dump(document), "utf-8")
    return 0


def main(arguments: list[str]) -> int:
    """Write the document, or compare with it; return 1 when that failed or the newest JAX changed a claim."""
    paths = [Path(word) for word in arguments if not word.startswith("--")]
    try:
        if "--device" in arguments:
            return _add_devices(paths, "--unchanged" in arguments)
        folder = paths[0]
        return _compare(folder) if "--newest" in arguments else _merge(folder, "--some" in arguments)
    except MergeError as error:
        print(f"claims: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
