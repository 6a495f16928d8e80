"""How often the site's own search brings a right page among its first three.

Asks the search of the built site every question of docs/_data/questions.json and the first line of every
message in the error catalogue, in the very scripts that its search page runs. A right page is one that the
question names, or the page that holds the entry or that it points to. The page of all questions does not
count. To see how much of it is due to the questions standing on the pages, they are asked a second time with
those lists left out. Writes build/bench/search.json; fails below the target.
"""

import contextlib
import io
import json
import sys
import tomllib
import types
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from py_mini_racer import MiniRacer

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))

from _bench import arguments, exit_code, write  # noqa: E402
from _ext.directives import questions  # noqa: E402

from jitguide._errors.entries import catalogue  # noqa: E402

STATIC = ROOT / "docs" / "_build" / "html" / "_static"
SCRIPTS = STATIC / "search"
TARGET, FIRST = 0.95, 3
INDEX = "reference/questions"


@contextlib.contextmanager
def engine(keep_lists=True):
    """Give a function from a query to the pages that the site's search shows, best first."""
    v8 = MiniRacer()
    v8.eval((SCRIPTS / "minisearch.min.js").read_text("utf-8"))
    v8.eval((SCRIPTS / "engine.js").read_text("utf-8"))
    sections = (SCRIPTS / "sections.js").read_text("utf-8")
    data = json.loads(sections.removeprefix("GuideSearch.load(").rstrip(";\n").removesuffix(")"))
    # A row of a question has no text of its own.
    rows = [row for row in data["rows"] if keep_lists or ((row[4] or row[5]) and row[0] != INDEX)]
    v8.eval(f"GuideSearch.load({json.dumps(data | {'rows': rows})})")
    yield lambda query: [
        page
        for page in v8.execute(f"GuideSearch.find({json.dumps(query)}).map(page => page.page)")
        if page != INDEX
    ]
    v8.close()  # its thread would keep the program from ending


def messages():
    """Return for each entry that raises or warns: its first line, and the right pages."""
    finder = (STATIC / "finder" / "catalogue.js").read_text("utf-8")
    data = json.loads(finder.removeprefix("GuideErrors.load(").rstrip(";\n").removesuffix(")"))
    homes = {entry["key"]: entry["home"] for entry in data["entries"]}
    found = []
    with (Path(__file__).parent / "explain_texts.toml").open("rb") as file:
        texts = {
            key: case["text"]
            for case in tomllib.load(file)["text"]
            for key in case["keys"][:1]
            if "text" in case
        }
    for entry in catalogue():
        # What needs another machine or installation has no example, but a text that people pasted.
        line = first_line(entry) if entry.examples else texts.get(entry.key, "").strip().split("\n")[-1]
        if line:
            found.append((entry.key, line, {homes[entry.key], entry.page.partition("#")[0]}))
    return found


def first_line(entry):
    """Return the first line that the entry's first example makes people see, or None if it is silent."""
    if entry.devices > len(jax.devices()):
        return None
    module = types.ModuleType("example")
    vars(module).update(jax=jax, jnp=jnp, np=np)
    with warnings.catch_warnings(record=True) as seen, contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("always")
        try:
            exec(entry.examples[0], vars(module))
        except BaseException as error:
            return str(error).strip().splitlines()[0] if str(error).strip() else None
    texts = [str(w.message) for w in seen if "never awaited" not in str(w.message)]
    return texts[0].splitlines()[0] if texts else None


def missed(asked, search):
    """Return those of (name, query, right pages) that the first results do not answer, with the results."""
    shown = {name: search(query)[:FIRST] for name, query, _ in asked}
    return {name: shown[name] for name, _, right in asked if not right & set(shown[name])}


def main():
    """Ask everything, print what was missed, write the result."""
    options = arguments(__doc__, 1, 1)  # nothing is timed: the quick form is the full one
    if not SCRIPTS.joinpath("sections.js").exists():
        sys.exit("There is no built site yet: run `nox -s docs` first.")
    asked = [(q.id, q.question, {place.partition("#")[0] for place in q.places}) for q in questions.load()]
    errors = messages()
    with engine() as search:
        wrong = missed(asked, search) | missed(errors, search)
    with engine(keep_lists=False) as search:
        alone = missed(asked, search)
    for name, pages in wrong.items():
        print(f"missed {name}: {', '.join(pages) or 'nothing found'}")
    share = 1 - len(wrong) / (len(asked) + len(errors))
    details = {
        "questions": len(asked),
        "messages": len(errors),
        "missed": wrong,
        "questions_found_without_the_lists": round(1 - len(alone) / len(asked), 3) if asked else None,
        "missed_without_the_lists": sorted(alone),
    }
    print(f"questions found although no page repeats them: {details['questions_found_without_the_lists']}")
    write("search", share, TARGET, "of queries find a right page among the first three", details)
    return exit_code(options, counts=share >= TARGET)


if __name__ == "__main__":
    raise SystemExit(main())
