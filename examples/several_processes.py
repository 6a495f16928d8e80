"""Compute one result in several processes, with jax.distributed.

Run it with `python several_processes.py`. It starts the processes, which
meet at a free port of 127.0.0.1, and prints what each of them reports. Each
makes its own part of the data; the sum over all of them is one jitted
function, whose result every process gets. It is checked against NumPy, and
if one process fails or is late, all are stopped. On a cluster, run
`take_part` on each machine, with the address of the first.
"""

import argparse
import os
import re
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from subprocess import PIPE, STDOUT, Popen

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

TIMEOUT = 120  # seconds until all are stopped


@jax.jit
def sum_of_squares(x):
    """Return the sum over all parts; nothing in here knows of processes."""
    return (x**2).sum()


def data_of(process, rows):
    """Return the rows of one process, on a cluster from its own disk."""
    return (
        np.random.default_rng(process).normal(size=rows).astype(np.float32)
    )


def take_part(process, processes, address, rows):
    """Be one process: connect, contribute a part, get the total."""
    # On CPUs, the processes exchange data through Gloo.
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(
        address, processes, process, initialization_timeout=60
    )
    # `jax.devices()` lists the devices of all processes.
    mesh = Mesh(np.array(jax.devices()), ("all",))
    split = NamedSharding(mesh, PartitionSpec("all"))
    whole = jax.make_array_from_process_local_data(
        split, data_of(process, rows)
    )
    # All processes must make the same calls, in the same order.
    total = sum_of_squares(whole)
    print(
        f"sees {jax.device_count()} devices, has {rows} rows of "
        f"{whole.size}"
    )
    print(f"total {float(total):.9g}", flush=True)
    jax.distributed.shutdown()


def start(process, options, address):
    """Start one process on the CPU, which processes can share."""
    environment = {  # a proxy doesn't reach 127.0.0.1
        k: v for k, v in os.environ.items() if "_proxy" not in k.lower()
    } | {
        "JAX_PLATFORMS": "cpu",
        "JAX_NUM_CPU_DEVICES": "1",
        "XLA_FLAGS": "",
    }
    command = [
        sys.executable,
        __file__,
        f"--processes={options.processes}",
        f"--rows={options.rows}",
    ]
    command += [f"--part={process}", f"--address={address}"]
    return Popen(
        command, env=environment, stdout=PIPE, stderr=STDOUT, text=True
    )


def run_all(options):
    """Run all until they end, fail or time out; return outputs."""
    with socket.socket() as probe:  # a free port
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    deadline, children, codes = time.monotonic() + TIMEOUT, [], [None]
    # Read all pipes at once: an unread one fills up and stops its process.
    with ThreadPoolExecutor(options.processes) as readers:
        try:
            for process in range(options.processes):
                children.append(start(process, options, address))
            outputs = [
                readers.submit(child.communicate) for child in children
            ]
            while (
                None in codes
                and not any(codes)
                and time.monotonic() < deadline
            ):
                time.sleep(0.05)
                codes = [child.poll() for child in children]
        finally:
            for child in children:
                child.kill()  # if one failed, the others would wait for it
    return [output.result()[0] for output in outputs], codes


def positive(text):
    """Return `text` as a positive whole number, for argparse."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a positive whole number. Give one, such as 4."
        )
    return int(text)


def oversee(options):
    """Run the processes, print what they say, and check it."""
    print(
        f"starting {options.processes} processes, which takes a few "
        "seconds",
        flush=True,
    )
    outputs, codes = run_all(options)
    for process, output in enumerate(outputs):
        # Leave out Gloo's lines about connections.
        for line in re.findall(r"^(?!\[Gloo\]).+", output, re.MULTILINE):
            print(f"process {process}: {line}")
    if any(codes) or None in codes:
        said = [
            "was stopped" if code is None else f"ended with code {code}"
            for code in codes
        ]
        sys.exit(
            "The check failed: "
            + ", ".join(
                f"process {i} {word}" for i, word in enumerate(said)
            )
        )
    exactly = sum(
        np.sum(data_of(i, options.rows).astype(float) ** 2)
        for i in range(options.processes)
    )
    totals = [
        float(re.search(r"^total (.*)$", output, re.MULTILINE)[1])
        for output in outputs
    ]
    if not np.allclose(totals, exactly, rtol=1e-4):
        sys.exit(
            f"The check failed: the processes found {totals}, and NumPy "
            f"finds {exactly:.9g}."
        )
    print(f"checked: every process has the total, {exactly:.9g} by NumPy")


def main(arguments=None):
    """Oversee the processes, or be one of them."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--processes",
        type=positive,
        default=2,
        help="how many (default: %(default)s)",
    )
    parser.add_argument(
        "--rows",
        type=positive,
        default=1000,
        help="of each process (default: %(default)s)",
    )
    parser.add_argument("--part", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--address", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.processes > 16:
        parser.error(
            f"--processes is {options.processes}. Give at most 16: each of "
            "them is a whole JAX."
        )
    if options.part is None:
        oversee(options)
    else:
        take_part(
            options.part, options.processes, options.address, options.rows
        )


if __name__ == "__main__":
    main()
