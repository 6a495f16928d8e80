"""The marker of a claim, its rules, and a counter of what JAX did.

A claim is a plain experiment that proves one sentence of the guide::

    @pytest.mark.claim("second-call-is-silent", "Python code in the body does not run on a cache hit.", seeds="S000-09")
    def test_second_call_is_silent(): ...

A wrong twin asserts the opposite of a claim and must fail, which shows that the claim can fail::

    @pytest.mark.wrong_twin("second-call-is-silent")
    def test_wrong_twin_second_call_prints(): ...

This folder needs jax, numpy and pytest only, and runs on JAX versions older than the guide supports.
"""

import json
import platform
import re
from collections import Counter
from pathlib import Path

import jax
import pytest

_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_SEED = re.compile(r"S\d{3}-\d{2,3}")
_EVENTS = {
    "/jax/core/compile/jaxpr_trace_duration": "traces",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lowerings",
    "/jax/core/compile/backend_compile_duration": "compiles",
}
_seen: Counter = Counter()


def _listen(event, _seconds, **_details):
    if event in _EVENTS:
        _seen[_EVENTS[event]] += 1


def pytest_addoption(parser):
    parser.addoption("--record", metavar="FILE", help="write the verdict on each claim to FILE")


def pytest_configure(config):
    config.addinivalue_line("markers", "claim(id, sentence, seeds=''): the sentence that the test proves")
    config.addinivalue_line("markers", "wrong_twin(id): asserts the opposite of a claim and must fail")
    if config.getoption("--record", None):
        config.pluginmanager.register(Recorder(Path(config.getoption("--record"))), "claims-recorder")
    jax.monitoring.register_event_duration_secs_listener(_listen)


def pytest_collection_modifyitems(items):
    """Refuse a claim without id or sentence, and ids that are used twice."""
    owners = {}
    for item in items:
        if __file__.rsplit("conftest", 1)[0] not in str(item.path):
            continue
        claim, twin = item.get_closest_marker("claim"), item.get_closest_marker("wrong_twin")
        if twin:
            item.add_marker(pytest.mark.xfail(strict=True, reason=f"wrong twin of {twin.args[0]}"))
            continue
        if not claim or len(claim.args) != 2:
            raise pytest.UsageError(f"{item.nodeid} needs @pytest.mark.claim(id, sentence).")
        name, sentence = claim.args
        if not _ID.fullmatch(name):
            raise pytest.UsageError(f"{item.nodeid}: the id {name!r} must be lower-case words joined by '-'.")
        if not sentence.endswith("."):
            raise pytest.UsageError(f"{item.nodeid}: {sentence!r} must be a sentence that ends with a full stop.")
        if bad := [s for s in claim.kwargs.get("seeds", "").split() if not _SEED.fullmatch(s)]:
            raise pytest.UsageError(f"{item.nodeid}: {bad} are not ids such as S000-01.")
        owner = owners.setdefault(name, item.nodeid.split("[")[0])
        if owner != item.nodeid.split("[")[0]:
            raise pytest.UsageError(f"the claim id {name!r} is used by {owner} and by {item.nodeid}.")


@pytest.fixture
def counted():
    """Call it to get what JAX did since the last call: a Counter of traces, lowerings and compiles."""
    _seen.clear()

    def since_last():
        result = Counter(_seen)
        _seen.clear()
        return result

    return since_last


class Recorder:
    """Collects the verdict on each claim: holds, does not hold, or not applicable, with the reason."""

    def __init__(self, path):
        self.path, self.names, self.verdicts = path, {}, {}

    def pytest_collection_finish(self, session):
        markers = ((item.nodeid, item.get_closest_marker("claim")) for item in session.items)
        self.names = {nodeid: marker.args[0] for nodeid, marker in markers if marker}

    def pytest_runtest_logreport(self, report):
        name = self.names.get(report.nodeid)
        if name is None or (report.passed and report.when != "call"):
            return
        verdict, reason = "holds", ""
        if report.skipped:
            verdict, reason = "not applicable", report.longrepr[2].removeprefix("Skipped: ")
        elif report.failed:
            verdict, reason = "does not hold", getattr(report.longrepr, "reprcrash", report.longrepr)
            reason = getattr(reason, "message", str(reason)).strip().splitlines()[0][:200]
        # A claim with several cases holds when all of them do.
        if self.verdicts.get(name, ("holds",))[0] == "holds":
            self.verdicts[name] = (verdict, reason)

    def pytest_sessionfinish(self):
        import numpy

        machine = {"jax": jax.__version__, "numpy": numpy.__version__, "python": platform.python_version()}
        record = {**machine, "verdicts": {k: list(v) for k, v in sorted(self.verdicts.items())}}
        self.path.write_text(json.dumps(record, indent=1), "utf-8")
