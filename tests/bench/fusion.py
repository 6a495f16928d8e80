"""How close fused functions come to a copy of the same bytes, and what a jitted ODE gains: reported per device."""

import jax
from _bench import arguments, exit_code, write

from jitguide._recording.experiments import QUICK, THOROUGH, fusion, ladder

# Of the time of a copy. A CPU has fewer bytes per operation to wait for, so there the numbers are only reported.
TARGETS = {"selu": 1.15, "polynomial": 1.15, "softmax": 1.5, "layer norm": 1.5}


def main():
    """Measure, write build/bench/fusion.json and return the exit code."""
    options = arguments(__doc__, 1, 1)
    rows = [
        row for experiment in (fusion, ladder) for row in experiment(QUICK if options.quick else THOROUGH)
    ]
    ratios = {row.what.partition(":")[0]: row.value for row in rows if row.unit == "ratio"}
    shares = {name: value / TARGETS[name] for name, value in ratios.items()}
    for row in rows:
        print(f"{row.what}: {row.value:.2f} ({row.low:.2f}–{row.high:.2f})")
    write(
        "fusion",
        max(shares.values()),
        1,
        "of target (worst function)",
        {"rows": [row.to_dict() for row in rows]},
    )
    return exit_code(options, times=jax.default_backend() == "cpu" or max(shares.values()) <= 1)


if __name__ == "__main__":
    raise SystemExit(main())
