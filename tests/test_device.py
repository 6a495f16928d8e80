"""The device report: complete, publishable, and calm about a broken backend."""

from __future__ import annotations

import getpass
import json
import os
import platform
import re
import subprocess
import sys
import types
from pathlib import Path

import jax
import numpy as np
import pytest

from jitguide import device_report
from jitguide._hardware import device_report as report_module
from jitguide._timing import machine


def test_the_report_names_the_versions_in_use() -> None:
    report = device_report()
    assert report.jax == jax.__version__
    assert report.numpy == np.__version__
    assert report.python == platform.python_version()


def test_the_report_describes_the_first_device() -> None:
    report = device_report()
    assert report.platform == jax.devices()[0].platform
    assert report.device_count == len(jax.devices())
    assert report.problem is None


def test_every_fact_appears_in_text_html_and_data() -> None:
    report = device_report()
    assert report.cpu in repr(report)
    assert f"{report.device_count} × {report.device_kind}" in repr(report)
    assert "<table>" in report._repr_html_()
    assert json.loads(json.dumps(report.to_dict()))["cores"] == report.cores


def test_settings_that_differ_from_their_defaults_are_listed() -> None:
    with jax.debug_nans(True), jax.numpy_rank_promotion("raise"):
        settings = device_report().to_dict()["settings"]
    assert settings["jax_debug_nans"] == "True"
    assert settings["jax_numpy_rank_promotion"] == "raise"
    assert "jax_debug_nans" not in device_report().to_dict()["settings"]


def test_the_copied_defaults_are_those_of_jax() -> None:
    program = (
        "import jax; from jitguide._hardware import device_report as module\n"
        "names = {**module._JAX_DEFAULTS, **module._EFFORT_DEFAULTS}\n"
        "print(module._changed_options(), [name for name in names if name not in jax.config.values])"
    )
    clean = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    done = subprocess.run(
        [sys.executable, "-c", program], env=clean, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[] []"


def test_an_option_that_is_no_attribute_is_listed_too() -> None:
    names = ("jax_cpu_enable_async_dispatch", "jax_compiler_enable_remat_pass")
    try:
        for name in names:
            jax.config.update(name, False)
        settings = device_report().to_dict()["settings"]
    finally:
        for name in names:
            jax.config.update(name, True)
    assert {name: settings.get(name) for name in names} == dict.fromkeys(names, "False")
    assert not set(names) & set(device_report().to_dict()["settings"])


def test_both_names_of_the_share_of_memory_are_listed() -> None:
    old, new = "XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_CLIENT_MEM_FRACTION"
    for name in (old, new):
        assert report_module._environment({name: ".5"}) == [(name, ".5")]


def test_x64_and_matmul_precision_have_a_row_of_their_own() -> None:
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        report = device_report()
    assert report.x64
    assert report.matmul_precision == "highest"
    assert re.search("64-bit types +on", repr(report))


def test_neither_host_nor_user_nor_directory_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=/home/somebody/dump --xla_cpu_enable_fast_math=true")
    report = device_report()
    text = repr(report) + report._repr_html_().replace("</", "<") + json.dumps(report.to_dict())
    assert "somebody" not in text
    assert platform.node() not in text or len(platform.node()) < 4
    assert str(Path.home()) not in text or str(Path.home()) == "/"
    assert f"/{getpass.getuser()}" not in text
    assert "--xla_dump_to=(a path)" in text
    assert "--xla_cpu_enable_fast_math=true" in text


def test_a_cache_directory_is_reported_as_yes(tmp_path: Path) -> None:
    program = (
        "import jax; jax.config.update('jax_compilation_cache_dir', 'some-cache')\n"
        "from jitguide import device_report; r = device_report(); print(r.compilation_cache, r)"
    )
    done = _run(program)
    assert done.stdout.startswith("True")
    assert "some-cache" not in done.stdout


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("--a=1 --b=2", "--a=1 --b=2"),
        ("--a=1 --dir=/home/me/x", "--a=1 --dir=(a path)"),
        ("--dir='/home/my name/x' --b", "--dir=(a path) --b"),
        ("--dir=C:\\Users\\me", "--dir=(a path)"),
        ("/etc/xla/flags.txt", "(read from a file)"),
        ("flags.txt", "(read from a file)"),
        ("--a='unclosed", "--a='unclosed"),
    ],
)
def test_xla_flags_are_listed_without_paths(flags: str, expected: str) -> None:
    assert report_module._environment({"XLA_FLAGS": flags}) == [("XLA_FLAGS", expected)]


def test_an_empty_variable_is_not_listed() -> None:
    assert report_module._environment({"XLA_FLAGS": " ", "OMP_NUM_THREADS": ""}) == []


def test_chips_are_not_named_by_their_identifier() -> None:
    chips = {"CUDA_VISIBLE_DEVICES": "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6,1"}
    assert report_module._environment(chips) == [("CUDA_VISIBLE_DEVICES", "(an identifier),1")]


def test_a_backend_that_does_not_start_is_a_sentence_and_not_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> list[jax.Device]:
        raise RuntimeError(
            "Unable to initialize backend 'cuda': no driver under /opt/secret/lib.so. More text."
        )

    monkeypatch.setattr(jax, "devices", broken)
    report = device_report()
    assert report.platform is None
    assert report.device_count == 0
    assert report.problem == (
        "JAX could not start a device: Unable to initialize backend 'cuda': no driver under lib.so. "
        "Check JAX_PLATFORMS and the installed plug-in."
    )
    assert report.problem in repr(report)
    assert "secret" not in repr(report)


def test_a_missing_platform_is_reported_by_the_real_jax() -> None:
    done = _run(
        "from jitguide import device_report; print(device_report().problem)",
        JAX_PLATFORMS="no_such_chip",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("JAX could not start a device: ")
    assert "no_such_chip" in done.stdout


def test_a_failure_without_a_text_is_named_by_its_class(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> list[jax.Device]:
        raise AssertionError

    monkeypatch.setattr(jax, "devices", broken)
    assert "could not start a device: AssertionError. Check" in (device_report().problem or "")


def test_a_device_without_memory_statistics_is_not_available() -> None:
    class Refuses:
        def memory_stats(self) -> None:
            raise NotImplementedError

    class Silent:
        def memory_stats(self) -> None:
            return None

    class Speaks:
        def memory_stats(self) -> dict[str, int]:
            return {"bytes_limit": 7}

    assert [report_module.memory_limit(d()) for d in (Refuses, Silent, Speaks)] == [None, None, 7]


def _run(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    root = Path(__file__).parent.parent
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=root,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.skipif(sys.platform == "win32", reason="the tool here is a shell script")
@pytest.mark.parametrize(
    ("script", "driver"), [("echo 580.159.04", "580.159.04"), ("exit 9", None), ("echo", None)]
)
def test_the_driver_of_a_gpu_is_reported(script, driver, tmp_path, monkeypatch):
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    found = {"platform": "gpu", "device_kind": "chip", "device_count": 1, "device_memory": None}
    monkeypatch.setattr(report_module, "_backend", lambda: found)
    assert device_report().driver == driver
    assert ("driver" in repr(device_report())) is bool(driver)


def test_the_clock_of_a_gpu_is_read_from_the_drivers_library(monkeypatch):
    """NVIDIA's library, played by one that knows two GPUs."""
    machine._gpu.cache_clear()
    monkeypatch.setattr(machine.ctypes, "CDLL", lambda _: types.SimpleNamespace())
    assert machine.megahertz() is None, "another library of that name"

    def by_index(index, device):
        device._obj.value = 100 + index
        return 0

    def by_name(name, device):
        device._obj.value = {b"GPU-b": 101}.get(name)
        return 0 if device._obj.value else 2

    def clock(device, kind, found):
        found._obj.value = {100: 1410, 101: 1980}.get(device.value, 0)
        return int(found._obj.value == 0)

    library = types.SimpleNamespace(
        nvmlInit_v2=lambda: 0,
        nvmlDeviceGetHandleByIndex_v2=by_index,
        nvmlDeviceGetHandleByUUID=by_name,
        nvmlDeviceGetClockInfo=clock,
    )
    monkeypatch.setattr(machine.ctypes, "CDLL", lambda _: library)
    for visible, found in ((None, 1410), ("1,0", 1980), ("GPU-b", 1980), ("GPU-c", None)):
        machine._gpu.cache_clear()
        if visible:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        else:
            monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        assert machine.megahertz() == found
    machine._gpu.cache_clear()
