"""A value for where something can't be read."""

import functools
from collections.abc import Callable
from copy import copy
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


def otherwise(default: T) -> Callable[[Callable[P, R]], Callable[P, R | T]]:
    """Make a function return `default` where it raises: what it reads is missing, refuses, or has another form."""

    def decorate(read: Callable[P, R]) -> Callable[P, R | T]:
        @functools.wraps(read)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> R | T:
            try:
                return read(*args, **kwargs)
            except Exception:
                return copy(default)

        return guarded

    return decorate
