"""Builds small sites with Sphinx, each in a fork of one process, so that Sphinx and JAX are imported once.

Standard input gives the arguments of a build a line, as a JSON list; the answer is a line with its exit code and what
it printed.
"""

import contextlib
import importlib
import json
import os
import sys
import tempfile
import traceback

from sphinx.cmd.build import main

# Imported here, and not in each fork. Not the guide's own extensions, of which a site may have other ones.
for module in (
    "jax",
    "myst_nb.sphinx_",
    "sphinx.ext.intersphinx",
    "nbclient",
    "IPython",
    "bs4",
    "jupyter_client.provisioning",
):
    importlib.import_module(module)


def build(arguments):
    """Run one build in a fork; return its exit code and what it printed."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as printed:
        child = os.fork()
        if not child:
            code = 70  # of an error that Sphinx does not report
            with contextlib.suppress(BaseException):
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # the next line is not for this build
                for stream in (1, 2):
                    os.dup2(printed.fileno(), stream)
                try:
                    code = main(arguments)
                except BaseException:
                    traceback.print_exc()
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)
        _, status = os.waitpid(child, 0)
        printed.seek(0)
        return os.waitstatus_to_exitcode(status), printed.read()


for line in sys.stdin:
    print(json.dumps(build(json.loads(line))), flush=True)
