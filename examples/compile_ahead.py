"""Compile before the first call, and export for another process.

Run it with `python compile_ahead.py`. It compiles a model for one shape,
shows what is known of the executable before it runs, and calls it. Then it
exports the model for any number of rows. With `pip install flatbuffers` it
also saves the export to a file, and lets a second process load and call it;
without, it says so. Put your own function in the place of `model`.
"""

import argparse
import pickle
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import jax
import jax.export
import jax.numpy as jnp
import numpy as np

# What a process needs in order to use the file: JAX, and nothing of this
# program.
LOADER = """
import pickle
import sys
import jax.export

with open(sys.argv[1], "rb") as file:
    model = jax.export.deserialize(bytearray(file.read()))
with open(sys.argv[2], "rb") as file:
    arguments = pickle.load(file)
with open(sys.argv[3], "wb") as file:
    pickle.dump(jax.device_get(model.call(*arguments)), file)
"""


def model(weights, rows):
    """Return one number for each row, also on a GPU as exact as NumPy's."""
    product = jnp.matmul(rows, weights, precision="highest")
    return jnp.tanh(product).sum(axis=1)


def expected(weights, rows):
    """Return the same by NumPy."""
    return np.tanh(rows @ weights).sum(axis=1)


def check(what, found, wanted):
    """Stop with a message if a result is wrong."""
    if not np.allclose(found, wanted, rtol=1e-3, atol=1e-3):
        sys.exit(
            f"The check failed: {what} gives {found}, and NumPy {wanted}."
        )


def save_and_load(exported, weights, rows):
    """Save the exported model, and have another process call it."""
    with tempfile.TemporaryDirectory() as name:
        file, arguments, result = (
            Path(name) / n for n in ("model.bin", "arguments", "result")
        )
        file.write_bytes(exported.serialize())
        arguments.write_bytes(pickle.dumps((weights, rows)))
        command = [
            sys.executable,
            "-c",
            LOADER,
            str(file),
            str(arguments),
            str(result),
        ]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        if done.returncode:
            sys.exit(
                "The check failed: the other process could not use the "
                f"file.\n{done.stderr}"
            )
        loaded = pickle.loads(result.read_bytes())  # noqa: S301
        return loaded, file.stat().st_size


def positive(text):
    """Return `text` as a positive whole number, for argparse."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a positive whole number. Give one, such as "
            "32."
        )
    return int(text)


def main(arguments=None):
    """Compile ahead, call, export, and check every result."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--rows",
        type=positive,
        default=32,
        help="rows in a call (default: %(default)s)",
    )
    count = parser.parse_args(arguments).rows
    rng = np.random.default_rng(0)
    weights, rows, more = (
        rng.normal(size=s).astype(np.float32)
        for s in ((64, 64), (count, 64), (count + 1, 64))
    )

    # Shapes and types are enough: no data is needed, and nothing runs.
    start = time.perf_counter()
    compiled = (
        jax.jit(model)
        .lower(
            *(
                jax.ShapeDtypeStruct(a.shape, a.dtype)
                for a in (weights, rows)
            )
        )
        .compile()
    )
    print(
        f"compiled for {count} rows in {time.perf_counter() - start:.2f} "
        "s, before the first call"
    )
    # Some backends don't count them.
    flops = (compiled.cost_analysis() or {}).get("flops")
    print(
        "floating point operations:",
        "not told here" if flops is None else f"{flops:,.0f}",
        flush=True,
    )
    check(
        "the compiled model",
        compiled(weights, rows),
        expected(weights, rows),
    )
    try:
        compiled(weights, more)
        sys.exit(
            "The check failed: the compiled model took a shape it was not "
            "made for."
        )
    except TypeError as error:
        print(
            "another shape is refused:", str(error).splitlines()[-1].strip()
        )

    (n,) = jax.export.symbolic_shape("n")  # stands for any number of rows
    exported = jax.export.export(jax.jit(model))(
        jax.ShapeDtypeStruct(weights.shape, weights.dtype),
        jax.ShapeDtypeStruct((n, 64), rows.dtype),
    )
    for batch in (rows, more):
        check(
            "the exported model",
            exported.call(weights, batch),
            expected(weights, batch),
        )
    print(
        f"exported for {exported.platforms[0]}, with rows of "
        f"{exported.in_avals[1].str_short()}",
        flush=True,
    )
    done = "compiled and exported model agree with NumPy"
    if find_spec("flatbuffers") is None:
        print(
            "left out: saving the export needs one more package, `pip "
            "install flatbuffers`"
        )
    else:
        loaded, size = save_and_load(exported, weights, more)
        check(
            "the model in another process", loaded, expected(weights, more)
        )
        print(
            f"saved in {size} bytes, loaded and called by another process"
        )
        done = "compiled, exported and loaded model agree with NumPy"
    print("checked:", done)


if __name__ == "__main__":
    main()
