"""What surrounds a build goes wrong, and the build goes on correctly or says what to do: nothing is stale, nothing half."""

import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import test_faults as faults

ROOT = Path(__file__).parents[2]
GOOD = faults.FRONT + faults.cell("print('six times seven is', 6 * 7)")
SHOWN = "six times seven is 42"


def start(folder, pages, conf=faults.CONF, **options):
    """Start a build of the given pages in a process group of its own."""
    source = folder / "docs"
    source.mkdir(exist_ok=True, parents=True)
    (source / "conf.py").write_text(conf.replace("../store", str(folder / "store")), "utf-8")
    for name, text in pages.items():
        (source / f"{name}.md").write_text(text, "utf-8")
    command = [sys.executable, "-m", "sphinx", "-n", "-W", "--keep-going", "-q", "-b", "html"]
    options["env"] = {**os.environ, "NO_COLOR": "1", **options.pop("env", {})}
    return subprocess.Popen(
        [*command, str(source), str(folder / "out")],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True, **options,
    )  # fmt: skip


def finish(process):
    """Return the exit code of a build and what it printed."""
    printed, _ = process.communicate(timeout=100)
    return process.returncode, printed


def shown(folder):
    return (folder / "out" / "index.html").read_text("utf-8")


def wait_for(condition, seconds=60):
    """Wait until the condition is true; fail when it never is."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


@pytest.mark.parametrize("home", ["/nowhere", ""])
def test_a_folder_with_spaces_and_other_alphabets_and_no_home_directory(tmp_path, home):
    folder = tmp_path / "mein Büchlein – 手引き"
    code, printed = finish(start(folder, {"index": GOOD}, env={"HOME": home}))
    assert code == 0, printed
    assert SHOWN in shown(folder)


def test_two_builds_at_once_do_not_disturb_each_other(tmp_path):
    slow = GOOD + faults.cell("import time; time.sleep(1)")
    both = [start(tmp_path, {"index": slow}) for _ in range(2)]
    for code, printed in [finish(process) for process in both]:
        assert code == 0, printed
    assert SHOWN in shown(tmp_path)


@pytest.mark.parametrize("moment", ["cell", "writing"])
def test_a_killed_build_leaves_nothing_half_and_no_process(tmp_path, moment):
    mark = tmp_path / "kernel"
    slow = (
        f"import os, pathlib, time; pathlib.Path({str(mark)!r}).write_text(str(os.getpid())); time.sleep(60)"
    )
    page = GOOD + (faults.cell(slow) if moment == "cell" else "\n" + "Prose, *a lot of it*.\n\n" * 4000)
    process = start(tmp_path, {"index": page})
    out = tmp_path / "out"
    wait_for(
        mark.exists
        if moment == "cell"
        else lambda: out.joinpath(".doctrees").exists() or (out / "_static").exists()
    )
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    if moment == "cell":
        kernel = int(mark.read_text())
        wait_for(lambda: not alive(kernel), 20)
    code, printed = finish(start(tmp_path, {"index": GOOD}))
    assert code == 0, printed
    assert SHOWN in shown(tmp_path)
    assert not list((tmp_path / "store").rglob("*.partial"))


def alive(pid):
    """Return whether a process runs, and is not only waiting for its parent to ask how it ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_a_store_that_cannot_be_written_is_one_line(tmp_path):
    code, printed = finish(start(tmp_path, {"index": GOOD}, faults.CONF.replace("../store", "/proc/store")))
    assert code != 0
    assert "Traceback (most recent call last)" not in printed
    assert re.search("cannot be written to /proc/store", printed), printed
    assert "/proc/store" in printed


def test_a_full_disk_is_told_with_the_page_and_leaves_no_record(tmp_path):
    def small_files():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))

    page = faults.FRONT + faults.cell("print('\\n'.join(['a line of text'] * 60_000))")
    code, printed = finish(start(tmp_path, {"index": page}, preexec_fn=small_files))
    assert code != 0
    assert "Traceback (most recent call last)" not in printed
    assert re.search(r"index\.md.*cannot be written.*too large.*Free some space", printed, re.IGNORECASE), (
        printed
    )
    assert not list((tmp_path / "store").rglob("*.json"))


def test_a_clock_that_jumped_discards_nothing(tmp_path):
    page = faults.FRONT + faults.cell("import os; print('run', os.getpid())")
    assert finish(start(tmp_path, {"index": page}))[0] == 0
    before = re.search(r"run \d+", shown(tmp_path))[0]
    for when in (0, 4_000_000_000):
        for path in [tmp_path / "store", *(tmp_path / "store").rglob("*")]:
            os.utime(path, (when, when))
        assert finish(start(tmp_path, {"index": page + f"\nIt is {when}.\n"}))[0] == 0
        assert before in shown(tmp_path)
        assert f"It is {when}." in shown(tmp_path)


def test_damaged_files_of_an_earlier_build_are_made_again(tmp_path):
    assert finish(start(tmp_path, {"index": GOOD}))[0] == 0
    for damaged, text in (("environment.pickle", GOOD), ("index.doctree", GOOD + "\nMore.\n")):
        path = next((tmp_path / "out").rglob(damaged))
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        code, printed = finish(start(tmp_path, {"index": text}))
        assert code == 0, printed
        assert SHOWN in shown(tmp_path)


def test_a_port_that_is_taken_is_told_before_anything_is_built(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [sys.executable, str(ROOT / "tools" / "live.py"), "--port", str(port), str(tmp_path), "out"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert f"Cannot serve on port {port}" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not Path("out").exists()
