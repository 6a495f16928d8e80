"""Test that your function compiles once, with realistic calls.

Copy this file into your tests, and put your function in the place of
`smooth` and your calls in the place of `real_life`. Run it with `pytest
test_compiles_once.py`, or without pytest by `python test_compiles_once.py`,
which prints a line for each test. `--show-failure` shows what you will read
on the day when a test fails.
"""

import argparse
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jitguide import assert_compiles, assert_traces, watch


@jax.jit
def smooth(signal, strength):
    """Draw each entry towards its neighbours."""
    neighbours = (jnp.roll(signal, 1) + jnp.roll(signal, -1)) / 2
    return (1 - strength) * signal + strength * neighbours


def real_life():
    """Yield the arguments of some calls, as different as possible."""
    rng = np.random.default_rng(0)
    # Floats only: the whole number 1 would be another type.
    for strength in (0.1, 0.5, 0.9):
        yield rng.normal(size=100).astype(np.float32), strength


def careless(function):
    """Make careless calls: sizes change, and an integer gets through."""
    for signal, strength in real_life():
        function(
            signal[: int(100 * strength)], 1 if strength > 0.5 else strength
        )


def test_it_compiles_once():
    smooth.clear_cache()  # what other tests compiled would help this one
    # Count traces: a persistent cache may save compiles.
    with assert_traces(1, of=smooth):
        for signal, strength in real_life():
            smooth(signal, strength)


def test_it_keeps_compiling_nothing_in_a_loop_that_feeds_back():
    signal, strength = next(real_life())
    # Warm up: from here on, the argument is a JAX array.
    signal = smooth(signal, strength)
    smooth(signal, strength)
    with assert_traces(0, of=smooth), assert_compiles(0, of=smooth):
        for _ in range(10):
            signal = smooth(signal, strength)


def test_each_call_is_a_hit_once_it_is_warm():
    watched = watch(smooth)
    for _ in range(2):
        for signal, strength in real_life():
            watched(signal, strength)
    second_round = watched.calls[len(watched.calls) // 2 :]
    assert {call.outcome for call in second_round} == {"hit"}


def test_the_result_is_right():
    for signal, strength in real_life():
        expected = [
            (1 - strength) * signal[i]
            + strength * (signal[i - 1] + signal[(i + 1) % 100]) / 2
            for i in range(100)
        ]
        np.testing.assert_allclose(
            smooth(signal, strength), expected, rtol=1e-4, atol=1e-5
        )


def test_the_first_test_can_fail():
    smooth.clear_cache()  # as the first test does
    try:
        with assert_traces(1, of=smooth):
            careless(smooth)
    except AssertionError:
        return
    raise AssertionError(
        "Three sizes and a whole number went unnoticed: the test tests "
        "nothing."
    )


def main(arguments=None):
    """Run all tests of this file without pytest, or show one that fails."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--show-failure",
        action="store_true",
        help="show what a test says when it fails",
    )
    if parser.parse_args(arguments).show_failure:
        watched = watch(smooth)
        careless(watched)
        try:
            watched.assert_traces(1)
        except AssertionError as error:
            sys.exit(f"AssertionError: {error}")
    tests = {
        name: test
        for name, test in globals().items()
        if name.startswith("test_")
    }
    failed = 0
    for name, test in tests.items():
        try:
            test()
        except AssertionError as error:
            failed += 1
            print(f"failed: {name}\n{error}", file=sys.stderr)
        else:
            print(f"passed: {name}")
    if failed:
        sys.exit(f"The check failed: {failed} of {len(tests)} tests.")
    print(f"checked: {len(tests)} tests passed")


if __name__ == "__main__":
    main()
