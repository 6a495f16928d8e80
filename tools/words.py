"""Find words of the old vocabulary of the guide, and say the word of the field instead.

It reads the prose of pages, the docstrings, messages and comments of `jitguide`, `examples` and `tools`, and the sentences
of the error catalogue and of claims. It leaves alone what is not ours to word: code, outputs, links, and quotations, such as JAX's messages.
Patterns are phrases where the bare word has a good use too; the use is named beside the pattern.
`tools/page_rules.py` runs it. It needs the standard library only.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]

_RULES = [
    # "program" is right for a whole script: "your program", "a training program".
    (r"(compiled|jitted|lowered|unrolled|fused|one|two|same|smaller|larger) programs?\b(?! that)", "compiled function, or executable"),
    (r"programs? (for each|of (its|their) own|per)\b|part of the program|into the program\b", "compiled function, or executable"),
    (r"starts? of (an? |each )?(operation|kernel)s?|prices? of", "launch overhead, dispatch overhead, or cost"),
    # "turn off", "in turn", "turn into" are right.
    (r"(each|every|per|a|one|last|first|next) turn(?! (on|off|into|out))|turns of", "iteration, or step"),
    (r"spell(ing|ed|t)s?\b", "calling convention, passed by keyword, or form"),
    (r"written out|writes? out(?! of)", "unrolled"),
    # A record of a measurement is right.
    (r"(wr[oi]te|writes|written|writing) down|the record of (a|the|its) (jitted |inner )?(function|trace|call)", "traced, the trace, or the jaxpr"),
    (r"repair\w*|cure[sd]?|remed(y|ies)|mend(s|ed|ing)?", "fix, workaround, or solution"),
    (r"dear(er|est|ly)?", "cost, or expensive"),
    (r"anew", "again, redefined, or recreated in every iteration"),
    (r"new one in each|made new in", "redefined, or recreated in every iteration"),
    # A message says something; a tool reports or shows it.
    (r"(`\w*`|JAX|XLA|Python) (says|said|tells|told)\b", "reports, shows, or records"),
    (r"(the|a) readers?\b", "you; in developer docs the user"),
    (r"stand-ins?", "tracer, or abstract value"),
    (r"kin|alike|likeness", "similar, equal, or the same"),
    (r"whoever|somebody|nobody|whatever", "you, JAX, XLA, or the caller"),
    (r"complaints?", "problem, or symptom"),
    (r"words of jit", "glossary"),
    (r"look(s|ed)? over", "check, or inspect"),
    (r"range in which it is known", "95 % confidence interval"),
    (r"eight in ten", "10th–90th percentile"),
    # "Warm up" and "warm-up" are the field's.
    (r"waits included|warm (calls?|functions?|programs?|runs?)\b", "“each result is waited for”, or “after warm-up”"),
    (r"(for|in) want of", "because there is no"),
    (r"for ever", "forever, or without a limit"),
    (r"as ever|at times|seldom|beforehand|besides|shall", "as usual, sometimes, rarely, in advance, also, or will"),
    # "Greatest common divisor" is mathematics.
    (r"commonest|greatest(?! common)", "most common, or largest"),
    # "There is no" and "is no longer" are plain English.
    (r"(?<!there )(is|are|was|were) no(?! (longer|more|fewer|less|later|larger|worse|better|slower|faster)\b)(?! ?[,.;)])", "is not a"),
    (r"neither", "not either, or two sentences"),
    (r"may not", "must not, cannot, or might not"),
    (r"times as (long|fast|slow|much|many|large)|1/\d+ of the (time|memory)", "a plain ratio: 3× slower"),
    (r"must [^.]* and got", "must be …, got …"),
    # The verb before its subject: "In a jitted function live two kinds of values".
    (r"(?<![\w,] )(In|Between|Behind|Under|Inside|At|On|With) (a|an|the|this|each|every)\b[^,.;:]{2,60} (lies?|lives?|stands?) (a|an|the|two|three|what)\b", "subject, verb, object"),
]  # fmt: skip
_RULES = [(re.compile(rf"(?<!\w)(?:{phrase})(?!\w)", re.IGNORECASE), say) for phrase, say in _RULES]

_CODE = re.compile(r"``[^`]+``|`[^`]*`")
_NOT_OURS = re.compile(
    r"\{\w+\}`x`|\{[^{}]*\}|(?<=\])\([^()]*(?:\([^()]*\))*\)|<[^<>]*>|https?://\S+|[\"“][^\"”]*[\"”]|&\w+;"
)  # roles, replacement fields, the targets of links, tags, quotations
_FENCE = re.compile(r"^ *(`{3,}|:{3,})(?:\{([\w-]+)\})?")
_PROSE = {
    "glossary",
    "note",
    "list-table",
    "tip",
    "warning",
    "important",
}  # directives in backticks that hold prose
_OPTION = re.compile(r"^ *:(alt|caption|title): ")


def words(text: str) -> Iterator[tuple[str, str]]:
    """Yield each phrase of some prose that the guide avoids, and what to say."""
    plain = _NOT_OURS.sub(" ", _CODE.sub("`x`", text))
    for pattern, say in _RULES:
        for match in pattern.finditer(plain):
            yield match.group(), say


def page(text: str) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines of prose of a page: its description, paragraphs, headings and captions."""
    fences: list[tuple[str, bool]] = []
    lines = text.splitlines()
    front = lines.index("---", 1) if lines[:1] == ["---"] and "---" in lines[1:] else -1
    for number, line in enumerate(lines, 1):
        if number <= front + 1:
            if "description" in line:
                yield number, line.replace('"', " ")  # its quotes are YAML's
            continue
        fence = _FENCE.match(line)
        code = bool(fences) and not fences[-1][1]
        if fences and line.strip() == fences[-1][0]:
            fences.pop()
        elif fence and not code:
            fences.append((fence[1], fence[1][0] == ":" or fence[2] in _PROSE))
        elif not code or _OPTION.match(line):
            yield number, line


def module(text: str) -> Iterator[tuple[int, str]]:
    """Yield the strings and comments of Python that are sentences: those with a space in them."""
    f_string = getattr(tokenize, "FSTRING_MIDDLE", None)  # part of a token of its own from Python 3.12 on
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.STRING, tokenize.COMMENT, f_string) and " " in token.string:
            pattern = token.string[:3].lower().startswith(("r'", 'r"', "rf", "br"))
            for offset, line in enumerate([] if pattern else token.string.strip("\"'").splitlines()):
                if not line.lstrip().startswith((">>>", "...")):
                    yield token.start[0] + offset, line


def catalogue(text: str) -> Iterator[tuple[int, str]]:
    """Yield the sentences of the error catalogue: titles, causes and costs."""
    lines = text.splitlines()
    for entry in tomllib.loads(text)["entry"]:
        at = lines.index(f'key = "{entry["key"]}"')
        for field in ("title", "cause", "cost"):
            yield (
                next(n for n in range(at, len(lines)) if lines[n].startswith(f"{field} =")) + 1,
                entry[field],
            )


def claims(text: str) -> Iterator[tuple[int, str]]:
    """Yield the sentences of claims, which pages show as proofs."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.claim":
            yield node.lineno, ast.literal_eval(node.args[1])


def problems(path: Path) -> list[tuple[int, str]]:
    """Return line and message for each phrase of a file that the guide avoids."""
    read = {".md": page, ".py": module, ".toml": catalogue}[path.suffix]
    lines = (claims if path.parent.name == "claims" else read)(path.read_text("utf-8"))
    return [(n, f"{found!r}: say {say}.") for n, line in lines for found, say in words(line)]


def files() -> list[Path]:
    """Return what is checked: pages, package, examples, tools, the catalogue and the claims."""
    globs = (
        "docs/**/*.md",
        "jitguide/**/*.py",
        "jitguide/**/*.toml",
        "examples/*.py",
        "tools/*.py",
        "tests/claims/test_*.py",
    )
    paths = sorted(path.relative_to(_ROOT) for glob in globs for path in _ROOT.glob(glob))
    left = [p for p in paths if not {"_build", "_data"} & set(p.parts) and p != Path("tools/words.py")]
    return [_ROOT / p for p in left]
