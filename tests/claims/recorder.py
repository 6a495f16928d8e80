"""Records the verdict on each claim: holds, does not hold, measured or not applicable, with the reason."""

import json
import platform
import re
import subprocess
from collections import Counter

import jax
import numpy
import pytest
from digests import digests_of_all
from hostile import CannotRun

# From the verdict that decides about a claim of several cases to the one that yields to all others.
RANK = ["does not hold", "measured", "holds", "not applicable"]


class Recorder:
    """Keeps the verdict on each claim.

    A claim whose verdict is recorded and whose experiment has not changed since is not run again: an interrupted
    run goes on where it stopped.
    """

    def __init__(self, path):
        self.path, self.verdicts, self.cases, self.left = path, {}, {}, {}
        self.digests = digests_of_all()  # also where only some files are run
        old = json.loads(path.read_text("utf-8")) if path.exists() else {}
        known = old["claims"].items() if machine().items() <= old.items() else []
        self.claims = {name: claim for name, claim in known if claim["digest"] == self.digests.get(name)}
        self.recorded = frozenset(self.claims)

    def pytest_configure(self, config):
        self.writes = not hasattr(config, "workerinput")  # a worker of xdist leaves that to the main process
        self._write()

    def pytest_collection_modifyitems(self, config, items):
        markers = {item: item.get_closest_marker("claim") for item in items}
        names = {item: marker.args[0] for item, marker in markers.items() if marker}
        # Wrong twins are no claims: the tests of the project run them, and this records nothing of them.
        waiting = [item for item in items if item in names and names[item] not in self.recorded]
        config.hook.pytest_deselected(items=[item for item in items if item not in waiting])
        items[:] = waiting
        self.cases = Counter(names[item] for item in waiting)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item, call):
        """Put the verdict on the report, which xdist carries from its workers to the process that records."""
        report = yield
        name = item.get_closest_marker("claim").args[0]
        report.claim, report.cases = name, self.cases[name]
        decides = report.when == "call" or not report.passed
        report.verdict = verdict_of(report, item, call.excinfo) if decides else None
        return report

    def pytest_runtest_logreport(self, report):
        if (name := getattr(report, "claim", None)) is None:  # of a worker that died
            return
        if report.verdict:
            cases = [self.verdicts.get(name, ["not applicable", ""]), report.verdict]
            # A claim with several cases holds when all those that can be run hold.
            self.verdicts[name] = min(reversed(cases), key=lambda verdict: RANK.index(verdict[0]))
        if report.when == "teardown":
            self.left[name] = self.left.get(name, report.cases) - 1
            if not self.left[name]:
                verdict, reason = self.verdicts[name]
                self.claims[name] = {"digest": self.digests[name], "verdict": verdict, "reason": reason}
                self._write()

    def _write(self):
        if not self.writes:
            return
        text = json.dumps({**machine(), "claims": self.claims}, indent=1, sort_keys=True, ensure_ascii=False)
        temporary = self.path.with_suffix(".part")
        temporary.write_text(text, "utf-8")
        temporary.replace(self.path)  # an interruption leaves the old record or the new one, never half of it


def machine():
    """Return what a record is of: versions, and the devices that JAX finds."""
    versions = {"jax": jax.__version__, "numpy": numpy.__version__, "python": platform.python_version()}
    return versions | {"device": jax.devices()[0].device_kind, "count": jax.device_count()}


# Errors of an experiment that cannot be set up on this JAX, or this machine; they say nothing about the sentence.
_SETUP = (CannotRun, ImportError, AttributeError, OSError, subprocess.SubprocessError)
_LACKS = re.compile(
    r"unexpected keyword argument|Unrecognized config option|new enum value must be|register_dataclass\(\) missing"
)


def verdict_of(report, item, excinfo):
    """Return the verdict and its reason, without what differs from run to run."""
    measured = item.get_closest_marker("measured")
    if report.passed:
        return ["measured" if measured else "holds", ""]
    if report.skipped:
        reason = report.longrepr[2].removeprefix("Skipped: ")
        return ["not applicable", reason.removeprefix("not applicable: ")]
    error = clean(excinfo.exconly().splitlines()[0].removeprefix("hostile."))
    if report.when != "call" or isinstance(excinfo.value, _SETUP) or _LACKS.search(error):
        return ["not applicable", f"the experiment could not be run: {error}"]
    reason = clean(_what_failed(report))
    return ["measured", f"not seen: {reason}"] if measured else ["does not hold", reason]


def _what_failed(report):
    """Return the statement that failed, and what was there instead."""
    entries = getattr(getattr(report.longrepr, "reprtraceback", None), "reprentries", [])
    lines = [line.strip() for entry in entries[-1:] for line in entry.lines]
    message = [line[1:].strip() for line in lines if line.startswith("E ")]
    message = [
        line for line in message if not line.startswith(("For simplicity", "----"))
    ]  # JAX on its frames
    message = message or str(report.longrepr).splitlines()
    error = message[-1] if message[0].endswith("(most recent call last):") else message[0]
    error = next((line for line in message if line.startswith("Actual message:")), error)  # of `match=`
    statement = [line for line in lines if not line.startswith(("E ", "raise "))][:1]
    error = error.removeprefix("AssertionError: ").removeprefix("assert ")
    return " – here: ".join([*statement, error])


def clean(text):
    """Return the text without paths and addresses, and not too long for a table."""
    text = re.sub(r"0x[0-9a-f]+", "0x...", re.sub(r"(/[\w.+-]+){2,}/", "", text))
    return text if len(text) <= 200 else text[:200].rsplit(" ", 1)[0] + " ..."
