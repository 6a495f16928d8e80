"""The downloads of each page: Markdown with outputs, notebooks with and without outputs, a Python file.

A download contains what the page shows: text, visible cells, outputs. It lies beside the page, under the same
name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import jupytext
import nbformat
from docutils import nodes
from nbformat import NotebookNode, v4
from sphinx.application import Sphinx

from _ext import build
from _ext.execution import notebooks
from _ext.execution.store import Store

from .markdown import pieces

_TAGS = ("raises-exception",)  # what other programs understand; Jupyter goes on after such a cell
KINDS = {
    ".ipynb": "Notebook, with outputs",
    ".to-run.ipynb": "Notebook, to run",
    ".py": "Python file",
    ".md": "Markdown, with outputs",
}


def launch_links(repository: str, branch: str, page: str) -> dict[str, str]:
    """Return the addresses that open a page's notebook elsewhere; none without a repository.

    Example:
        >>> launch_links("", "gh-pages", "learn/shapes")
        {}
        >>> launch_links("someone/guide", "gh-pages", "learn/shapes")["Colab"]
        'https://colab.research.google.com/github/someone/guide/blob/gh-pages/learn/shapes.to-run.ipynb'
    """
    if not repository:
        return {}
    notebook = f"{page}.to-run.ipynb"
    return {
        "Colab": f"https://colab.research.google.com/github/{repository}/blob/{branch}/{notebook}",
        "Binder": f"https://mybinder.org/v2/gh/{repository}/{branch}?labpath={notebook.replace('/', '%2F')}",
    }


def write(app: Sphinx, page: str, _template: str, context: dict, doctree: nodes.document | None) -> None:
    """Write the downloads of a page while it is written itself, and name them to its template."""
    if doctree is None or not build.is_site(app):
        return
    notebook = notebooks.read_page(app, page)
    if record := Store.of(app).load(page, notebooks.key(notebook, app.config.guide_fingerprint)):
        notebooks.fill(notebook, record["outputs"])
    parts = pieces(doctree.deepcopy(), app.builder)
    shown = [part if isinstance(part, str) else notebook.cells[part] for part in parts]
    texts = {".md": as_markdown(shown)}
    if any(not isinstance(part, str) for part in shown):
        texts |= _programs(shown, page, app.config.guide_repository)
        context["guide_launch"] = launch_links(app.config.guide_repository, app.config.guide_branch, page)
    for ending, text in texts.items():
        target = Path(app.outdir, f"{page}{ending}")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")
    name = page.rpartition("/")[2]
    context["guide_downloads"] = {
        label: f"{name}{ending}" for ending, label in KINDS.items() if ending in texts
    }


def _programs(shown: list[str | NotebookNode], page: str, repository: str) -> dict[str, str]:
    full, bare = (notebook(shown, page, repository, outputs=outputs) for outputs in (True, False))
    script = jupytext.writes(_as_script(shown), fmt="py:percent")
    return {".ipynb": nbformat.writes(full), ".to-run.ipynb": nbformat.writes(bare), ".py": script}


def as_markdown(shown: list[str | NotebookNode]) -> str:
    """Return the page as Markdown, its outputs in fences of their own."""
    parts = [part if isinstance(part, str) else _fences(part) for part in shown]
    return "\n\n".join(parts) + "\n"


def _fences(cell: NotebookNode) -> str:
    alt = cell.metadata.get("alt")
    parts = [] if _hides_code(cell) else [f"```python\n{cell.source}\n```"]
    outputs = "\n".join(
        text for text in map(_text, cell.outputs) if text and not (alt and text.startswith("<Figure"))
    )
    if outputs.strip():
        parts.append(f"```text\n{outputs.rstrip()}\n```")
    if alt:
        parts.append(f"*{cell.metadata.get('caption', 'Figure').rstrip('.')}:* {alt}")
    return "\n\n".join(parts)


def _hides_code(cell: NotebookNode) -> bool:
    """Return whether a reader needs only what the cell shows: the page leaves its code out, or folds that of a figure."""
    tags = cell.metadata.get("tags", [])
    return "remove-input" in tags or ("hide-input" in tags and "alt" in cell.metadata)


def _text(output: NotebookNode) -> str:
    """Return what an output says in a terminal."""
    match output.output_type:
        case "stream":
            return output.text.rstrip("\n")
        case "error":
            return f"{output.ename}: {output.evalue}"
    text = output.data.get("text/plain", "")
    return "" if "scrapbook" in output.get("metadata", {}) else text


def notebook(
    shown: list[str | NotebookNode], page: str, repository: str = "", *, outputs: bool
) -> NotebookNode:
    """Return the page as a notebook that runs by itself."""
    cells = [_install(repository)] if repository else []
    for part in shown:
        if isinstance(part, str):
            cells.append(v4.new_markdown_cell(_without_links(part)))
        else:
            cells.append(_code(part, outputs=outputs))
    made = v4.new_notebook(cells=cells)
    made.metadata = nbformat.from_dict(
        {
            "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
            "language_info": {"name": "python"},
            "guide": {"page": page, "jax": build.JAX},
        }
    )
    for number, cell in enumerate(cells):
        cell.id = f"cell-{number}"  # the same page gives the same file
    return made


def _install(repository: str) -> NotebookNode:
    return v4.new_code_cell(
        f"# Where the notebook opens on another machine, what it needs comes first.\n"
        f'%pip install --quiet "jitguide[plot] @ git+https://github.com/{repository}"'
    )


def _code(cell: NotebookNode, *, outputs: bool) -> NotebookNode:
    tags = [tag for tag in cell.metadata.get("tags", []) if tag in _TAGS]
    metadata: dict[str, object] = {"tags": tags} if tags else {}
    if _hides_code(cell):
        metadata["jupyter"] = {"source_hidden": True}  # folded in JupyterLab: it runs, and the page hides it
    made = v4.new_code_cell(cell.source, metadata=metadata)
    if outputs:
        shown = [output for output in cell.outputs if "scrapbook" not in output.get("metadata", {})]
        made.outputs = [piece for output in shown for piece in _portable(output, cell.metadata)]
        made.execution_count = None
    return made


def _portable(output: NotebookNode, options: Mapping[str, str]) -> Iterator[NotebookNode]:
    """Yield an output so that it looks the same without the site's style sheet, in a viewer that trusts no HTML."""
    made = nbformat.from_dict(output)
    made.pop("execution_count", None)
    if made.output_type == "execute_result":
        made.execution_count = None
    if made.output_type == "error":
        made.traceback = [f"{made.ename}: {made.evalue}"]
    picture = "image/png" in made.get("data", {})
    if picture:  # JupyterLab drops a drawing in the HTML of a notebook from elsewhere
        made.data = NotebookNode({"image/png": made.data["image/png"], "text/plain": options["alt"]})
        made.metadata.setdefault("image/png", NotebookNode())["alt"] = options["alt"]
    yield made
    if picture and "caption" in options:
        caption = re.sub(r"([\\`*_\[\]<>#$])", r"\\\1", options["caption"])
        yield v4.new_output("display_data", {"text/markdown": f"*{caption}*"})


def _without_links(text: str) -> str:
    """Turn links to other pages of the site into their text: a file on its own has no neighbours."""
    return re.sub(r"(?<!!)\[([^\]]*)\]\((?![a-z]+:)[^)\s]*\)", r"\1", text)


def _as_script(shown: list[str | NotebookNode]) -> NotebookNode:
    """Return the page as a notebook whose cells also run as one program."""
    cells = [
        v4.new_markdown_cell(_without_links(part))
        if isinstance(part, str)
        else v4.new_code_cell(_guarded(part))
        for part in shown
    ]
    return v4.new_notebook(cells=cells, metadata={"jupytext": {"notebook_metadata_filter": "-all"}})


def _guarded(cell: NotebookNode) -> str:
    """Return the code of a cell; one that is meant to fail says so and lets the program go on."""
    expected = cell.metadata.get("raises")
    if not expected:
        return cell.source
    kept, last = _split_last(cell.source)
    indented = "\n".join(f"    {line}" if line else "" for line in last)
    guard = f"try:  # meant to fail: {expected}\n{indented}\nexcept Exception as error:\n    print(type(error).__name__, error, sep=': ')"
    return "\n".join([*kept, guard])


def _split_last(source: str) -> tuple[list[str], list[str]]:
    """Return the lines before the last statement, and those of it."""
    lines = source.splitlines()
    last = ast.parse(source).body[-1]
    start = min([last.lineno, *(d.lineno for d in getattr(last, "decorator_list", []))]) - 1
    return lines[:start], lines[start:]
