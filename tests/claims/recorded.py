"""Which claims need not run again: those whose verdict on this JAX is recorded and whose experiment is unchanged."""

import json
from pathlib import Path

import jax
from device_columns import short
from digests import digests_of_all

_DATA = Path(__file__).resolve().parents[2] / "docs" / "_data" / "claims.json"


def current():
    """Return the ids of these claims; none on a JAX that is not recorded, and none on another backend than the CPU."""
    document = json.loads(_DATA.read_text("utf-8"))
    column = {release["jax"]: i for i, release in enumerate(document["releases"])}.get(jax.__version__)
    if column is None or jax.default_backend() != "cpu":
        return set()
    now = {name: short(digest) for name, digest in digests_of_all().items()}
    return {
        name
        for name, claim in document["claims"].items()
        if claim["digest"] == now.get(name) and claim["verdicts"][column] != "-"
    }


def split(items):
    """Return the items to run, and those of claims that are current, with their wrong twins."""
    known, run, left = current(), [], []
    for item in items:
        marker = item.get_closest_marker("claim") or item.get_closest_marker("wrong_twin")
        (left if marker and marker.args[0] in known else run).append(item)
    return run, left
