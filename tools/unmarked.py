"""Find sentences of the pages that state a rule about JAX without a mark of what proves it.

A *rule* is a sentence of a learn, howto, reference or about page, or of ten-minutes.md, that

- stands in a takeaway or *In short* box, or
- is universal: it contains any, every, always, all, only, never, none or nothing. Idioms such as "at all", the
  labels of links, code and quotations do not count.

It is *marked* if it cites a claim, or if its paragraph, item or row links to JAX's documentation, XLA's, or their
source, which says where it was read. Not rules: questions, advice ("Pass every array as an argument", "Never reuse a key"),
quoted beliefs (whole lines in italics), headings, code, exercises and predictions, and sentences that report what
this page ran ("Here all three agree").

It reads words, not meanings: a false rule without one of these words goes unnoticed, and so does a mark that proves
something else. `tools/page_rules.py` runs it. Needs the standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

_UNIVERSAL = re.compile(r"\b(any|every|always|all|only|never|none|nothing)\b", re.IGNORECASE)
_IDIOM = re.compile(
    r"\b(at all|after all|all the same|in all|first of all|if any|all but|above all|once and for all|"
    r"nothing but|(next to|for|little or) nothing|(and|or|if not) only one|not only|what is not|all along)\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(
    r"(?<!\})`[^`]*`|\[(?:[^][]|\[\])*\]\([^)]*\)|[\"“][^\"”]*[\"”]"
)  # code, a link's label, a quotation
_LABEL = re.compile(r"^\*\*[^*]+\*\*")  # the bold start of an item: what it is about
_SOURCE = re.compile(r"https://(docs\.jax\.dev|openxla\.org|github\.com/(jax-ml|openxla)|docs\.nvidia\.com)")
_OWN_RUN = re.compile(r"\b(here|this (page|cell|table|figure|output))\b|\{glue:", re.IGNORECASE)
_ADVICE = re.compile(
    r"(?:(?:So|Then|And|But|Or|Therefore|First|Instead|Otherwise|There|Inside \w+|For [^,]+|If [^,]+|To [^,]+|"
    r"When [^,]+|Where [^,]+|In [^,]+),? +)?(?:never|always|only|also|please)? *"
    r"(?:add|ask|avoid|branch|build|call|cast|catch|change|check|choose|clear|collect|commit|compare|compile|compute|"
    r"convert|copy|count|cut|declare|define|delete|do|don't|donate|draw|find|fix|give|hide|import|(?-i:Jit)|keep|leave|let|list|"
    r"look|make|mark|mask|measure|move|name|note|pad|pass|paste|pin|prefer|print|put|read|rebind|record|remember|replace|reuse|"
    r"return|run|save|see|send|set|share|show|split|stack|start|stop|store|take|test|time|treat|trust|try|turn|"
    r"use|wait|warm|watch|wrap|write|you (?:need|want|should))\b",
    re.IGNORECASE,
)
_ITEM = re.compile(r"([-*]|\d+\.|:) |\|")  # of a list, of a definition, or a row
_CLAUSE = re.compile(r"[:;] |, (?:or|and|so|since|because|but) ")
_FENCE = re.compile(r"^ *(`{3,}|:{3,})(?:\{([\w-]+)\})?")
_BOXES = {"takeaway", "in-short"}
_ASIDE = {"question", "predict", "exercise", "toctree", "figure", "image", "glossary-index"}
# Pages about the guide itself, its search aids and its package: they state nothing about JAX.
_ABOUT_THE_GUIDE = {
    "status.md",
    "index.md",
    "api.md",
    "claims.md",
    "coverage.md",
    "errors.md",
    "five-tutorials.md",
    "questions.md",
}
_END = re.compile(r"(?<=[.!?;])\s+(?=[A-Z`*(\[{])")


def rules(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each sentence of a page that states a rule without a mark."""
    states_facts = (
        path.parent.name in {"learn", "howto", "reference", "about"} or path.name == "ten-minutes.md"
    )
    if not states_facts or path.name in _ABOUT_THE_GUIDE:
        return
    for lines, box in _paragraphs(path.read_text("utf-8")):
        prose = " ".join(line for _, line in lines if not _ITEM.match(line))
        for number, line in lines:
            if _SOURCE.search(line if _ITEM.match(line) else prose):
                continue
            for sentence in _sentences(line):
                if _is_rule(sentence, boxed=box in _BOXES) and "{claim}" not in sentence:
                    yield number, sentence


def _paragraphs(text: str) -> Iterator[tuple[list[tuple[int, str]], str]]:
    """Yield the prose: each paragraph as numbered lines, with the innermost box that it stands in."""
    fences: list[tuple[str, str]] = []
    paragraph: list[tuple[int, str]] = []
    lines = text.splitlines()
    first = lines.index("---", 1) + 1 if lines[:1] == ["---"] and "---" in lines[1:] else 0
    for number, line in enumerate([*lines[first:], ""], first + 1):
        fence = _FENCE.match(line)
        inside = fences[-1] if fences else ("", "")
        prose = not inside[0].startswith("`") and inside[1] not in _ASIDE
        if fence or not line.strip():
            if paragraph:
                yield paragraph, inside[1]
            paragraph = []
        if fence and inside[0] and line.strip() == inside[0]:
            fences.pop()
        elif fence and not inside[0].startswith("`"):
            fences.append((fence[1], fence[2] or ""))
        elif prose and line.strip() and not line.startswith(("#", "%", ":alt:", ":caption:", "**Next")):
            paragraph.append((number, line.strip()))


def _sentences(line: str) -> list[str]:
    if line.startswith("|"):
        return [line]  # a row of a table is one statement
    return _END.split(re.sub(r"^([-*]|\d+\.|:) +", "", line))


def _is_rule(sentence: str, *, boxed: bool) -> bool:
    if re.fullmatch(r"\*[^*]+\*", sentence) or sentence.endswith("?"):
        return False
    words = _IDIOM.sub("", _QUOTED.sub("", _LABEL.sub("", sentence)))
    if _OWN_RUN.search(words):
        return False
    clauses = [clause for clause in _CLAUSE.split(words) if not _ADVICE.match(clause.lstrip("*_( "))]
    return (boxed and len(clauses) == len(_CLAUSE.split(words))) or any(map(_UNIVERSAL.search, clauses))
