"""The marker of a claim, its rules, and a counter of what JAX did.

A claim is a plain experiment that proves one sentence of the guide::

    @pytest.mark.claim("second-call-is-silent", "A cache hit runs no Python code.", seeds="S000-09")
    def test_second_call_is_silent(): ...

A wrong twin asserts the opposite of a claim and must fail, which shows that the claim can fail::

    @pytest.mark.wrong_twin("second-call-is-silent")
    def test_wrong_twin_second_call_prints(): ...

It must fail with an `AssertionError`, or with the error that its marker names as `raises=`. Any other error, such
as that of a misspelled name, fails the run.

This folder needs jax, numpy and pytest only, and runs on JAX versions older than the guide supports.
"""

import hashlib
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
    config.addinivalue_line(
        "markers", "wrong_twin(id, raises=AssertionError): asserts the opposite of a claim and must fail so"
    )
    if config.getoption("--record", None):
        config.pluginmanager.register(Recorder(Path(config.getoption("--record"))), "claims-recorder")
    jax.monitoring.register_event_duration_secs_listener(_listen)


def pytest_collection_modifyitems(items):
    """Refuse a claim without id or sentence, and ids that are used twice."""
    owners = {}
    for item in items:
        here = __file__.rsplit("conftest", 1)[0] in str(item.path)
        if not here or not isinstance(item, pytest.Function):  # a doctest of a script is no claim
            continue
        claim, twin = item.get_closest_marker("claim"), item.get_closest_marker("wrong_twin")
        if twin:
            raises = twin.kwargs.get("raises", AssertionError)
            item.add_marker(
                pytest.mark.xfail(strict=True, raises=raises, reason=f"wrong twin of {twin.args[0]}")
            )
            continue
        if not claim or len(claim.args) != 2:
            raise pytest.UsageError(f"{item.nodeid} needs @pytest.mark.claim(id, sentence).")
        name, sentence = claim.args
        if not _ID.fullmatch(name):
            raise pytest.UsageError(f"{item.nodeid}: the id {name!r} must be lower-case words joined by '-'.")
        if not sentence.endswith("."):
            raise pytest.UsageError(
                f"{item.nodeid}: {sentence!r} must be a sentence that ends with a full stop."
            )
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
    """Keeps the verdict on each claim, file by file: holds, does not hold, or not applicable, and the reason.

    A file whose verdicts are recorded and which has not changed since is not run again: an interrupted run
    goes on where it stopped.
    """

    def __init__(self, path):
        self.path, self.pending, self.running, self.files, self.digests = path, {}, {}, {}, {}
        old = json.loads(path.read_text("utf-8")) if path.exists() else {}
        if old.get("jax") == jax.__version__:
            self.files = {n: f for n, f in old["files"].items() if f["digest"] == digest(path_of(n))}

    def pytest_collection_modifyitems(self, config, items):
        known = [item for item in items if item.path.name in self.files]
        config.hook.pytest_deselected(items=known)
        items[:] = [item for item in items if item.path.name not in self.files]
        for item in items:
            self.pending.setdefault(item.path.name, set()).add(item.nodeid)
            self.digests[item.path.name] = digest(item.path)
            if claim := item.get_closest_marker("claim"):
                self.running[item.nodeid] = claim.args[0]

    def pytest_runtest_logreport(self, report):
        file = Path(report.nodeid.split("::")[0]).name
        name = self.running.get(report.nodeid)
        if name and (report.when == "call" or not report.passed):
            verdicts = self.files.setdefault(file, {"digest": "", "verdicts": {}})["verdicts"]
            # A claim with several cases holds when all of them do.
            if verdicts.get(name, ["holds"])[0] == "holds":
                verdicts[name] = verdict_of(report)
        if report.when == "teardown":
            self.pending[file].discard(report.nodeid)
            if not self.pending[file] and file in self.files:
                self.files[file]["digest"] = self.digests[file]
                self._write()

    def _write(self):
        import numpy

        machine = {"jax": jax.__version__, "numpy": numpy.__version__, "python": platform.python_version()}
        complete = {name: self.files[name] for name in sorted(self.files) if self.files[name]["digest"]}
        text = json.dumps({**machine, "files": complete}, indent=1, sort_keys=True)
        temporary = self.path.with_suffix(".part")
        temporary.write_text(text, "utf-8")
        temporary.replace(self.path)  # an interruption leaves the old record or the new one, never half of it


def path_of(name):
    """Return where the file of that name lies."""
    return Path(__file__).with_name(name)


def digest(path):
    """Return what changes when an experiment, or what it rests on, changes; "" where the file is gone."""
    texts = [path.read_bytes(), Path(__file__).read_bytes()] if path.exists() else []
    return hashlib.sha256(b"".join(texts)).hexdigest()[:16] if texts else ""


# Errors of an experiment that cannot be set up on an old JAX; they say nothing about the sentence.
_CANNOT_RUN = re.compile(
    r"AttributeError: module 'jax|Unrecognized config option|new enum value must be|register_dataclass\(\) missing"
)


def verdict_of(report):
    """Return the verdict and its reason, without what differs from run to run."""
    if report.passed:
        return ["holds", ""]
    if report.skipped:
        reason = report.longrepr[2].removeprefix("Skipped: ")
        return ["not applicable", reason.removeprefix("not applicable: ")]
    entries = getattr(getattr(report.longrepr, "reprtraceback", None), "reprentries", [])
    lines = [line.strip() for entry in entries[-1:] for line in entry.lines]
    message = [line[1:].strip() for line in lines if line.startswith("E ")]
    message = message or str(report.longrepr).splitlines()
    error = message[-1] if message[0].endswith("(most recent call last):") else message[0]
    error = next((line for line in message if line.startswith("Actual message:")), error)  # of `match=`
    if _CANNOT_RUN.search(error):
        return ["not applicable", f"the experiment needs what this JAX lacks: {clean(error)}"]
    statement = [line for line in lines if not line.startswith(("E ", "raise "))][:1]
    error = error.removeprefix("AssertionError: ").removeprefix("assert ")
    return ["does not hold", clean(" – here: ".join([*statement, error]))]


def clean(text):
    """Return the text without paths and addresses, and not too long for a table."""
    text = re.sub(r"0x[0-9a-f]+", "0x...", re.sub(r"(/[\w.+-]+){2,}/", "", text))
    return text if len(text) <= 200 else text[:200].rsplit(" ", 1)[0] + " ..."
