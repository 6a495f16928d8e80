"""How often something may happen, as the asserts are told."""

from numbers import Integral
from typing import Any, NamedTuple

from jitguide._text import show


class Wanted(NamedTuple):
    """How often something may happen: exactly, or at most, a number of times."""

    number: int
    at_most: bool

    def fits(self, found: int) -> bool:
        return found <= self.number if self.at_most else found == self.number

    def __str__(self) -> str:
        return f"at most {self.number}" if self.at_most else str(self.number)


def require_count(expected: Any, at_most: Any = None) -> Wanted:
    """Return what an assertion wants; raise unless it is a number of times that something can happen."""
    if (expected is None) == (at_most is None):
        raise TypeError(
            "Give either the exact number, as in `assert_compiles(1)`, or `at_most=`, as in "
            f"`assert_compiles(at_most=3)`; got {show(expected)} and at_most={show(at_most)}."
        )
    name, count = ("expected", expected) if at_most is None else ("at_most", at_most)
    if isinstance(count, bool) or not isinstance(count, Integral) or count < 0:
        kind = ValueError if isinstance(count, Integral) and count < 0 else TypeError
        raise kind(
            f"`{name}` must be a whole number of at least 0, got {show(count)} of type "
            f"{type(count).__name__}. Write it first, as in `assert_compiles(1)`."
        )
    return Wanted(int(count), at_most is not None)
