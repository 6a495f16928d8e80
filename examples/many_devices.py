"""Run one jitted function on all devices of a machine, unchanged.

Run it with `python many_devices.py`. Where there are too few accelerators,
JAX makes several devices out of the processor: slower than one, and good
for trying things out. It prints which rows lie on which device, whether the
devices had to talk to each other, and checks the result against one device.
Put your own function in the place of `loss`, and split your arrays as
`spread` does.
"""

import argparse
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jitguide import watch


@watch
@jax.jit
def loss(weights, rows, targets, real):
    """Return the mean squared error over the real rows."""
    miss = jnp.tanh(rows @ weights) - targets
    return jnp.mean(miss**2, where=real)


def get_devices(number):
    """Return accelerators if there are enough, else CPU devices."""
    # This must come before JAX first looks for devices.
    jax.config.update("jax_num_cpu_devices", number)
    devices = jax.devices()
    return (devices if len(devices) >= number else jax.devices("cpu"))[
        :number
    ]


def pad(array, rows):
    """Repeat the last row: zeros, though masked, can make NaN gradients."""
    return np.concatenate([array, *[array[-1:]] * (rows - len(array))])


def spread(devices, weights, *by_row):
    """Replicate the weights, and split the rows over the devices."""
    mesh = Mesh(np.array(devices), ("rows",))
    split, copied = (
        NamedSharding(mesh, PartitionSpec("rows")),
        NamedSharding(mesh, PartitionSpec()),
    )
    return jax.device_put(weights, copied), *(
        jax.device_put(array, split) for array in by_row
    )


def number_between(low, high, what):
    """Return an argparse type: a whole number in these bounds."""

    def read(text):
        if not text.isdecimal() or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not a whole number from {low} to {high}. "
                f"Give the number of {what}, such as {2 * low}."
            )
        return int(text)

    return read


def main(arguments=None):
    """Compute one loss on many devices and on one, and compare."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    devices, rows = (
        number_between(2, 64, "devices"),
        number_between(1, 10**7, "rows"),
    )
    parser.add_argument(
        "--devices",
        type=devices,
        default=4,
        help="number of devices (default: %(default)s)",
    )
    parser.add_argument(
        "--rows",
        type=rows,
        default=1001,
        help="number of rows (default: %(default)s)",
    )
    options = parser.parse_args(arguments)
    devices = get_devices(options.devices)

    rng = np.random.default_rng(0)
    weights, data, targets = (
        rng.normal(size=s).astype(np.float32)
        for s in ((16, 1), (options.rows, 16), (options.rows, 1))
    )
    # Each device gets the same number of rows.
    padded = -(-options.rows // len(devices)) * len(devices)
    real = np.arange(padded)[:, None] < options.rows
    everything = (weights, pad(data, padded), pad(targets, padded), real)

    print(
        f"{options.rows} rows, padded to {padded}, on {len(devices)} "
        f"devices of the kind {devices[0].device_kind!r}"
    )
    parts = spread(devices, *everything)
    for shard in parts[1].addressable_shards:
        start, stop, _ = shard.index[0].indices(padded)
        print(f"device {shard.device.id}: rows {start} to {stop - 1}")
    on_many = loss(*parts)
    text = loss.lower(*parts).compile().as_text() or ""
    print(
        "the devices exchange their sums:",
        "yes" if "all-reduce" in text else "no all-reduce in the program",
    )
    on_one = loss(
        *jax.device_put(
            (weights, data, targets, real[: options.rows]), devices[0]
        )
    )
    print(
        f"loss {float(on_many):.6f} on many devices, {float(on_one):.6f} "
        "on one"
    )

    print(loss)
    if not np.allclose(on_many, on_one, rtol=1e-4):
        sys.exit(
            f"The check failed: {len(devices)} devices give {on_many}, and "
            f"one device {on_one}."
        )
    if len(parts[1].addressable_shards) != len(devices):
        sys.exit("The check failed: the rows did not go to all devices.")
    print("checked: many devices give the result of one")


if __name__ == "__main__":
    main()
