"""The marker of a claim, its rules, and a counter of what JAX did.

A claim is a plain experiment that proves one sentence of the guide::

    @pytest.mark.claim("second-call-is-silent", "A cache hit runs no Python code.", seeds="S000-09")
    def test_second_call_is_silent(): ...

A wrong twin asserts the opposite of a claim and must fail, which shows that the claim can fail::

    @pytest.mark.wrong_twin("second-call-is-silent")
    def test_wrong_twin_second_call_prints(): ...

It must fail with an `AssertionError`, or with the error that its marker names as `raises=`. Any other error, such
as that of a misspelled name, fails the run.

A sentence that speaks of all, any or none is attacked with the cases of `hostile.py`. Two more markers say what
an outcome rests on: `measured`, which also lies with the machine, and `platform`, a property of that backend::

    @pytest.mark.measured("how soon the operating system starts a thread")
    @pytest.mark.platform("cpu")

This folder needs jax, numpy and pytest only, and runs on JAX versions older than the guide supports.
"""

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import jax
import pytest

sys.path.append(str(Path(__file__).parent))  # for the modules that the experiments share
import hostile
import recorder

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
    config.addinivalue_line("markers", "hostile(*names): run it with these cases of hostile.py too")
    config.addinivalue_line(
        "markers", "measured(cause): the outcome depends on the machine too, by this cause"
    )
    config.addinivalue_line("markers", "platform(name): a property of this backend; skipped on others")
    if path := config.getoption("--record", None):
        config.pluginmanager.register(recorder.Recorder(Path(path)), "claims-recorder")
    jax.monitoring.register_event_duration_secs_listener(_listen)


def pytest_generate_tests(metafunc):
    hostile.parametrize(metafunc)


def pytest_runtest_setup(item):
    marker = item.get_closest_marker("platform")
    if marker and jax.default_backend() not in marker.args:
        pytest.skip(f"not applicable: a property of the backend {marker.args[0]}")


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


@pytest.fixture(scope="session")
def child():
    """Return a function that runs code in a Python of its own and returns what it printed.

    Where that Python fails, the experiment cannot be run: `CannotRun` names the last line of its error.
    """

    def run(code, *args, devices=None, folder=None, **settings):
        environment = {k: v for k, v in os.environ.items() if k not in ("XLA_FLAGS", "JAX_NUM_CPU_DEVICES")}
        environment |= {"JAX_PLATFORMS": "cpu"}
        if devices:
            environment["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={devices}"
        command = [sys.executable, "-c", code, *args]
        done = subprocess.run(
            command, env=environment | settings, cwd=folder, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise hostile.CannotRun(
                (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
            )
        return done.stdout

    return run
