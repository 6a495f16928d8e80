"""The error catalogue. It is data, in `catalogue/*.toml`, where code needs no quoting; this reads it."""

import functools
import tomllib
from dataclasses import MISSING, fields
from importlib import resources
from typing import Any

from jitguide._errors.entry import Entry

# The order decides between entries that match equally well, and it is the order of the error index.
GROUPS = (
    "values", "sizes", "leaks", "arguments", "results", "arrays", "loops", "branches", "compiled", "devices",
    "shardings", "callbacks", "trees", "keys", "versions", "settings",
    "silent", "silent_types", "silent_tracing", "silent_costs",
)  # fmt: skip


@functools.cache
def catalogue() -> tuple[Entry, ...]:
    return tuple(entry for group in GROUPS for entry in entries(group))


def entries(group: str) -> list[Entry]:
    """Return the entries of one group, which is the name of a file of the catalogue."""
    text = resources.files(__package__).joinpath("catalogue", f"{group}.toml").read_text(encoding="utf-8")
    return [_entry(group, raw) for raw in tomllib.loads(text)["entry"]]


def _entry(group: str, raw: dict[str, Any]) -> Entry:
    needed = (field.name for field in fields(Entry) if field.default is MISSING)
    if missing := [name for name in needed if name not in raw]:
        raise ValueError(
            f"catalogue/{group}.toml: the entry {raw.get('key', 'without a key')!r} needs {', '.join(missing)}."
        )
    lists = {name: tuple(value) for name, value in raw.items() if isinstance(value, list)}
    examples = tuple(example.strip("\n") for example in raw["examples"])
    return Entry(**raw | lists | {"examples": examples, "fix": raw["fix"].strip("\n")})
