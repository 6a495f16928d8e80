"""What is in the key of jit's caches: about a hundred changes to a call after warm-up, each made and counted.

`Changes` and `counted` are the experiment, and serve for changes of your own.
"""

from jitguide.demos.cache_key import arguments, surroundings
from jitguide.demos.cache_key.changes import Change, Changes, counted

__all__ = ["GROUPS", "Change", "Changes", "counted", "run"]

#: The groups of changes by name, for `run`.
GROUPS = {
    "shapes": arguments.shapes,
    "sources": arguments.sources,
    "scalars": arguments.scalars,
    "containers": arguments.containers,
    "statics": arguments.statics,
    "conventions": arguments.conventions,
    "keys": surroundings.keys,
    "functions": surroundings.functions,
    "places": surroundings.places,
    "settings": surroundings.settings,
    "transformations": surroundings.transformations,
    "stages": surroundings.stages,
    "processes": surroundings.processes,
}


def run(group: str) -> Changes:
    """Make and count the changes of one group of `GROUPS`.

    Raises:
        KeyError: There is no such group.

    Example:
        >>> from jitguide.demos import cache_key
        >>> print(cache_key.run("keys"))
        Random keys
        change                            fast path  traces  lowerings  compiles
        key(0) → key(1)                   hit             –          –         –
        key(0) → PRNGKey(0), the old kind  left            1          1         1
        key(0) → key(0, impl="rbg")       left            1          1         1
    """
    make = GROUPS[group]
    table = Changes((make.__doc__ or group).rstrip("."))
    make(table)
    return table
