"""Errors: expect one, explain one."""

from __future__ import annotations

from jitguide._errors._catalogue import catalogue
from jitguide._errors._entry import Entry, Explanation
from jitguide._errors._expect import CaughtError, expect_error
from jitguide._errors._explain import explain

__all__ = ["CaughtError", "Entry", "Explanation", "catalogue", "expect_error", "explain"]
