"""Keep the result of a benchmark where other programs find it."""

import json
import platform
from pathlib import Path

import jax

FOLDER = Path(__file__).parents[2] / "build" / "bench"


def write(name, value, target, unit, details):
    """Write build/bench/NAME.json and print one line."""
    machine = {
        "jax": jax.__version__,
        "python": platform.python_version(),
        "device": jax.devices()[0].device_kind,
    }
    result = {"value": value, "target": target, "unit": unit, "details": {**details, "machine": machine}}
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{name}.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(f"{name}: {value:.4g} {unit} (target {target:g})")
