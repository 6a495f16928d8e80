"""Find out why a program recompiles, in three steps, and fix it.

1. `with watch()` around the whole program tells which function compiles too
   often.
2. `watch(f)` around that function tells why, call by call.
3. `assert_traces` checks that the fixed program traces once, and so
   compiles once.

Run it with `python find_your_recompiles.py`. It prints one table for each
step. The program under suspicion here scores requests, which can all
differ. Put your own calls into `as_it_came` and `fixed`.
"""

import argparse
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jitguide import assert_traces, watch

LONGEST = 16  # no request has more items
# What requests look like: number of items, cut-off, type. They come in this
# order, over and over.
KINDS = [
    (5, 0.5, np.float32),
    (5, 0.5, np.float32),
    (9, 0.5, np.float32),
    (9, 0.2, np.float32),
    (9, 0.2, np.int32),
    (5, 0.5, np.float32),
]


@jax.jit(static_argnames="cutoff")
def score(items, cutoff):
    """Return the sum of what lies above the cut-off."""
    return jnp.sum(jnp.maximum(items - cutoff, 0.0))


@jax.jit
def score_padded(items, count, cutoff):
    """Score a padded request: only its first `count` items are real."""
    real = jnp.arange(items.shape[0]) < count
    return jnp.sum(jnp.maximum(items - cutoff, 0.0), where=real)


def requests(number):
    """Return pairs of items and cut-off, as different as requests are."""
    rng = np.random.default_rng(7)
    kinds = [KINDS[i % len(KINDS)] for i in range(number)]
    return [
        ((3 * rng.normal(size=size)).astype(kind), cutoff)
        for size, cutoff, kind in kinds
    ]


def as_it_came(function, work):
    """Call the function with the requests as they came in."""
    return [float(function(items, cutoff)) for items, cutoff in work]


def fixed(work):
    """Pad requests to one shape and dtype; the cut-off is traced."""
    results = []
    for items, cutoff in work:
        padded = np.zeros(LONGEST, np.float32)
        padded[: len(items)] = items
        results.append(
            float(
                score_padded(
                    padded, np.int32(len(items)), np.float32(cutoff)
                )
            )
        )
    return results


def two_or_more(text):
    """Return `text` as a whole number that is at least 2, for argparse."""
    if not text.isdecimal() or int(text) < 2:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a whole number of at least 2. Give the "
            "number of requests, such as 8."
        )
    return int(text)


def main(arguments=None):
    """Find the function, find the reason, and check the fix."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--requests",
        type=two_or_more,
        default=8,
        help="number of requests (default: %(default)s)",
    )
    work = requests(parser.parse_args(arguments).requests)

    print("1. Which function compiles?", flush=True)
    with watch() as seen:
        before = as_it_came(score, work)
    print(seen, end="\n\n")

    print(
        "2. Why? The same calls once more, from empty caches:", flush=True
    )
    score.clear_cache()
    watched = watch(score)
    as_it_came(watched, work)
    print(watched, end="\n\n")

    print("3. The fixed program:", flush=True)
    # If there are more, this raises an error that lists them.
    with assert_traces(1, of=score_padded):
        after = fixed(work)
    print(f"{len(work)} requests: {watched.traces} compiles before, 1 now")
    if not np.allclose(before, after, rtol=1e-5, atol=1e-5):
        sys.exit(
            f"The check failed: the fixed program gives {after}, and "
            f"should give {before}."
        )
    print("checked: one trace, and the same scores as before")


if __name__ == "__main__":
    main()
