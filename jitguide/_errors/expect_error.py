"""A block that must fail, and must fail in the announced way."""

from __future__ import annotations  # the attribute `type` hides the class of that name

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from jitguide._errors.entry import Explanation
from jitguide._errors.explain import explain
from jitguide._errors.frames import SourceLine, user_line
from jitguide._text import clean, first_sentence, jax_link


class CaughtError:
    """The error that `expect_error` caught; its attributes are there when its block has ended.

    The exception itself is not kept: its frames would keep arrays and tracers alive.

    Attributes:
        type: The class that was raised.
        message: The whole message, without directories and addresses.
        line: The line of your source that failed, or None where it is not known.
        link: The page of JAX's documentation that the message names, or None.
        explanation: What the error catalogue says about it.
    """

    type: type[BaseException]
    message: str
    line: SourceLine | None
    link: str | None
    explanation: Explanation

    def _fill(self, error: BaseException) -> None:
        self.type = type(error)
        self.message = clean(str(error))
        self.line = user_line(error)
        self.link = jax_link(self.message)
        self.explanation = explain(error)

    def __getattr__(self, name: str) -> Any:
        if name in CaughtError.__annotations__:
            raise RuntimeError(
                "Nothing is caught yet: the block of expect_error has not ended with an error. "
                "Read the attributes after the `with` block."
            )
        raise AttributeError(f"A CaughtError has no attribute {name!r}.")

    def __repr__(self) -> str:
        if "type" not in vars(self):
            return "CaughtError(nothing yet)"
        lines = [f"{self.type.__name__}: {first_sentence(self.message)}".rstrip(": ")]
        if self.line:
            lines.append(str(self.line))
        return "\n".join([*lines, *([f"  See {self.link}"] if self.link else [])])


def expect_error(*types: type[BaseException]) -> AbstractContextManager[CaughtError]:
    """Pass only if the block raises one of `types`; print the error in a few lines.

    What is printed: the class, the first sentence, your line with the failing part marked, and the page of
    JAX's documentation that the message names. Directories, addresses and JAX's note about filtered
    tracebacks are left out, so the output is the same on every machine.

    Differs from `pytest.raises` in that it shows the error, and turns another class than the
    expected one into a failure that says so.

    Args:
        *types: One or more exception classes.

    Returns:
        A context manager that gives a `CaughtError`, which is filled in when the block ends.

    Raises:
        TypeError: If an argument is not an exception class.
        AssertionError: When the block ends, if nothing or an error of another class was raised.

    Example:
        >>> from jitguide import expect_error
        >>> import jax
        >>> with expect_error(TypeError) as caught:
        ...     jax.jit(3)
        TypeError: Expected a callable value, got 3 ...
        >>> caught.explanation.key
        'jit-of-a-non-callable'
    """
    if not types:
        raise TypeError(
            "expect_error needs at least one exception class. Write for example expect_error(TypeError)."
        )
    checked: tuple[object, ...] = types
    for given in checked:
        if not (isinstance(given, type) and issubclass(given, BaseException)):
            raise TypeError(
                f"expect_error needs exception classes, got {given!r} of type {type(given).__name__}. Give them "
                "one by one, as in expect_error(TypeError, ValueError)."
            )
    return _expecting(types)


@contextmanager
def _expecting(types: tuple[type[BaseException], ...]) -> Iterator[CaughtError]:
    caught = CaughtError()
    expected = " or ".join(t.__name__ for t in types)
    try:
        yield caught
    except types as error:
        caught._fill(error)
    except Exception as error:  # not BaseException: an interrupt must stay an interrupt
        raise AssertionError(
            f"The block was to raise {expected}, but it raised {type(error).__name__}: "
            f"{first_sentence(clean(str(error)))} Expect that class instead, or change the block."
        ) from error
    else:
        raise AssertionError(
            f"The block was to raise {expected}, but it ended without an error. "
            "Remove expect_error, or change the block so that it fails."
        )
    print(caught)  # noqa: T201 -- showing the error is what the block is for
