"""Detect changes in the outputs of pages whose code is the same.

Of the outputs of each page it keeps what no machine and no day should change: jaxprs, the first lines of errors,
and counts of calls, traces and compilations. They lie in docs/_data/drift, a file for each JAX and platform. A
difference is a warning with a diff, and so fails the build; `nox -s docs -- -D guide_drift=accept` accepts it.
A page whose code was changed is not compared until it is accepted once.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

from _ext import DATA, build

from .store import Store

_log = logging.getLogger(__name__)
_FOLDER = DATA / "drift"
_MEASURED = re.compile(r"\d[\d.,]*(?:e[+-]?\d+)?\s?(?:[nµm]?s|[KMGT]?i?B(?:/s)?|%)(?!\w)")
_COUNT = re.compile(
    r"\d+ (?:hits?|traces?|traced|lowerings?|lowered|compiles?|compiled|programs?|(?:jaxpr|StableHLO) \w+)\b"
    r"|\d+ calls?(?= \()|(?:traced|compiled|compiles|traces|entries):? \d+(?! of)\b"
)


def facts(cells: Iterable[list[dict]]) -> list[str]:
    """Return what must not change silently in the outputs of a page's cells.

    Example:
        >>> facts([[{"output_type": "stream", "text": "2 compiles in 1.3 ms, a hit took 4 µs"}]])
        ['cell 1: 2 compiles']
    """
    found = []
    for number, outputs in enumerate(cells, 1):
        for output in outputs:
            if output["output_type"] == "error":
                first = output["evalue"].strip().splitlines()[:1]
                found.append(f"cell {number}: {output['ename']}: {_MEASURED.sub('#', ''.join(first))}")
        text = "".join(map(_text, outputs))
        shown = list(jaxprs(text))
        found += [f"cell {number}: {jaxpr}" for jaxpr in shown]
        for jaxpr in shown:
            text = text.replace(jaxpr, "")
        if counts := _COUNT.findall(_MEASURED.sub("#", text)):
            found.append(f"cell {number}: {', '.join(counts)}")
    return found


def _text(output: dict) -> str:
    if output["output_type"] == "stream":
        return output["text"]
    text = output.get("data", {}).get("text/plain", "")
    return f"{text}\n" if isinstance(text, str) else ""


def jaxprs(text: str) -> Iterable[str]:
    """Yield every outermost jaxpr of the text.

    Example:
        >>> list(jaxprs("see { lambda ; a:f32[]. let b:f32[] = jit[jaxpr={ lambda ; . }] a in (b,) } there"))
        ['{ lambda ; a:f32[]. let b:f32[] = jit[jaxpr={ lambda ; . }] a in (b,) }']
    """
    end = 0
    while (start := text.find("{ lambda", end)) >= 0:
        depth = 0
        for end in range(start, len(text)):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            if depth == 0:
                break
        end += 1
        if depth == 0:
            yield text[start:end]


def compare(old: dict, new: dict) -> dict[str, str]:
    """Return a diff for each page whose code is the same and whose facts are not."""
    found = {}
    for page, now in new.items():
        if page in old and old[page]["code"] == now["code"] and old[page]["facts"] != now["facts"]:
            before, after = ("\n".join(record["facts"]).splitlines() for record in (old[page], now))
            found[page] = "\n".join(difflib.unified_diff(before, after, "recorded", "now", lineterm=""))
    return found


def _collect(app: Sphinx, env: BuildEnvironment) -> dict:
    found, store = {}, Store.of(app)
    for name in sorted(env.all_docs):
        record, (key, code) = store.latest(name), env.metadata[name].get("guide_code", ("", ""))
        if record and record["key"] == key:
            found[name] = {"code": code, "facts": facts(record["outputs"])}
    return {name: page for name, page in found.items() if page["facts"]}


def check(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Warn of pages whose facts differ from the recorded ones, or record them."""
    path = _FOLDER / f"{build.JAX}-{build.devices()[0][0]}.json"
    old, new = json.loads(path.read_text("utf-8")) if path.exists() else {}, _collect(app, env)
    if app.config.guide_drift == "accept":
        if app.config.guide_only:  # the other pages keep what was recorded of them
            new = {page: record for page, record in old.items() if page in env.all_docs} | new
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(new, indent=1, ensure_ascii=False, sort_keys=True) + "\n", "utf-8")
        _log.info("drift: %d pages recorded in %s", len(new), path.name)
        return []
    for page, diff in compare(old, new).items():
        text = "the code is the same, and its outputs are not:\n%s\nIf that is right, accept it: %s"
        accept = "nox -s docs -- -D guide_drift=accept"
        _log.warning(text, diff, accept, location=page, type="guide", subtype="drift")
    same = sum(page in old and old[page]["code"] == now["code"] for page, now in new.items())
    _log.info("drift: %d pages compared, %d not recorded with this code and JAX", same, len(new) - same)
    return []
