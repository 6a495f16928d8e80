"""Batch variable-length sequences with few compiles: bucket, pad, mask.

Run it with `python bucketed_batches.py`. It prints, for three ways to
choose the padded length, how often JAX compiled, how much of the work was
padding, and the seconds of two passes over the sequences, of which the
second compiles nothing; then it checks every result against NumPy. Put your
own function in the place of `score`, and keep its mask.
"""

import argparse
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from jitguide import watch

ROWS = 16  # sequences in a batch


@jax.jit
def score(batch, counts):
    """Return the mean of tanh(a * b) over all pairs of each row."""
    real = jnp.arange(batch.shape[1]) < counts[:, None]
    both = real[:, :, None] & real[:, None, :]
    pairs = jnp.tanh(batch[:, :, None] * batch[:, None, :])
    return jnp.mean(pairs, axis=(1, 2), where=both)


def batches(sequences, padded_length):
    """Yield places, padded batch and counts, length by length."""
    places_of = {}
    for place, sequence in enumerate(sequences):
        places_of.setdefault(padded_length(len(sequence)), []).append(place)
    for length, places in places_of.items():
        for start in range(0, len(places), ROWS):
            chosen = places[start : start + ROWS]
            # The last batch may be shorter: its last rows are padding, too.
            batch = np.zeros((ROWS, length), np.float32)
            counts = np.ones(ROWS, np.int32)
            for row, place in enumerate(chosen):
                counts[row] = len(sequences[place])
                batch[row, : counts[row]] = sequences[place]
            yield chosen, batch, counts


def run(sequences, padded_length):
    """Return results, compiles, share of padding and seconds of two passes."""
    score.clear_cache()
    watched, results, seconds = watch(score), np.zeros(len(sequences)), []
    for _ in range(2):
        entries, start = 0, time.perf_counter()
        for places, batch, counts in batches(sequences, padded_length):
            # NumPy cuts the padding off: JAX would compile each slice.
            results[places] = np.asarray(watched(batch, counts))[
                : len(places)
            ]
            entries += batch.size
        seconds.append(time.perf_counter() - start)
    padding = 1 - sum(map(len, sequences)) / entries
    return results, watched.compiles, padding, *seconds


def positive(text):
    """Return `text` as a positive whole number, for argparse."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a positive whole number. Give one, such as "
            "500."
        )
    return int(text)


def main(arguments=None):
    """Compare three policies on the same sequences, and check them."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--sequences",
        type=positive,
        default=2000,
        help="number of sequences (default: %(default)s)",
    )
    parser.add_argument(
        "--longest",
        type=positive,
        default=200,
        help="length of the longest (default: %(default)s)",
    )
    options = parser.parse_args(arguments)

    rng = np.random.default_rng(0)
    # Most sequences are short.
    lengths = (
        1 + (options.longest - 1) * rng.random(options.sequences) ** 2
    ).astype(int)
    sequences = [rng.normal(size=n).astype(np.float32) for n in lengths]
    expected = np.array(
        [
            np.tanh(np.outer(sequence, sequence)).mean()
            for sequence in sequences
        ]
    )

    policies = {
        "multiples of 32": lambda n: -(-n // 32) * 32,
        "powers of two": lambda n: max(32, 1 << (n - 1).bit_length()),
        "the longest": lambda _: options.longest,
    }
    print("padded to        compiles  padding  first pass  second pass")
    for name, padded_length in policies.items():
        results, compiles, padding, first, second = run(
            sequences, padded_length
        )
        print(
            f"{name:15} {compiles:9} {padding:8.0%} {first:9.2f} s"
            f" {1e3 * second:9.0f} ms",
            flush=True,
        )
        if not np.allclose(results, expected, rtol=1e-4, atol=1e-4):
            worst = int(np.argmax(np.abs(results - expected)))
            sys.exit(
                f"The check failed: sequence {worst} gives "
                f"{results[worst]}, and NumPy {expected[worst]}."
            )
    print(
        f"checked: all {options.sequences} results agree with NumPy, for "
        "each way to pad"
    )


if __name__ == "__main__":
    main()
