"""Write everything that follows from the repository's address.

The address is set once, as `repository = "owner/name"` under `[tool.jitguide]` in pyproject.toml; while it is
empty, no link to it appears anywhere. Hatch takes the package's links and README from here, docs/conf.py the
site's. What must stand in a file stands between two lines `repository:begin` and `repository:end`:

    python tools/repository.py            writes those lines
    python tools/repository.py --check    fails where they do not fit the address
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_BLOCK = re.compile(r"^(.*repository:begin.*\n)(?:.*\n)*?(.*repository:end.*\n)", re.MULTILINE)
_RELATIVE_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?![a-z]+:|#)([^)\s]+)\)")


def address(root: Path = ROOT) -> str:
    """Return "owner/name" of the repository, or "" while it has no address.

    Raises:
        ValueError: The setting in pyproject.toml is not of this form.
    """
    repository = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["tool"]["jitguide"]["repository"]
    if repository and not re.fullmatch(r"[\w.-]+/[\w.-]+", repository):
        raise ValueError(
            f'`repository` in pyproject.toml must be "owner/name" or "", got {repository!r}. '
            "It is the part of the address after https://github.com/."
        )
    return repository


def site(repository: str) -> str:
    """Return where .github/workflows/publish.yml publishes the site, or "".

    Example:
        >>> site("someone/guide")
        'https://someone.github.io/guide/'
    """
    owner, _, name = repository.partition("/")
    return f"https://{owner.lower()}.github.io/{name}/" if repository else ""


def urls(repository: str) -> dict[str, str]:
    """Return the links that PyPI shows beside the package."""
    if not repository:
        return {}
    code = f"https://github.com/{repository}"
    return {
        "Documentation": site(repository),
        "Source": code,
        "Issues": f"{code}/issues",
        "Changelog": f"{code}/blob/HEAD/CHANGELOG.md",
    }


def blocks(repository: str) -> dict[str, str]:
    """Return the lines that belong into files, by file."""
    if not repository:
        return {"README.md": "", "CITATION.cff": ""}
    code = f"https://github.com/{repository}"
    badge = f"{code}/actions/workflows/ci.yml"
    return {
        "README.md": (
            f"[![Continuous integration]({badge}/badge.svg)]({badge})\n\n"
            f"Read the guide at <{site(repository)}>, or get its source: `git clone {code}`.\n"
        ),
        "CITATION.cff": f"repository-code: {code}\nurl: {site(repository)}\n",
    }


def filled(text: str, block: str) -> str:
    """Return a file's text with the lines between its two marks replaced."""
    new, count = _BLOCK.subn(lambda marks: marks[1] + block + marks[2], text)
    if count != 1:
        raise ValueError(
            f"there must be one repository:begin before one repository:end, got {count} of them."
        )
    return new


def readme(text: str, repository: str) -> str:
    """Return the README as PyPI shows it, where a relative link leads nowhere.

    Example:
        >>> readme("See [how](HOW.md).", "")
        'See how.'
        >>> readme("See [how](HOW.md).", "someone/guide")
        'See [how](https://github.com/someone/guide/blob/HEAD/HOW.md).'
    """
    text = re.sub(r"^.*repository:(begin|end).*\n", "", text, flags=re.MULTILINE)
    text = re.sub(
        r"<picture>.*?</picture>\n+", "", text, flags=re.DOTALL
    )  # its files are in the repository only
    target = rf"[\1](https://github.com/{repository}/blob/HEAD/\2)" if repository else r"\1"
    return _RELATIVE_LINK.sub(target, text)


def get_metadata_hook() -> type:
    """Return what Hatch calls to complete the package's metadata."""
    from hatchling.metadata.plugin.interface import MetadataHookInterface  # only there while Hatch builds

    class Metadata(MetadataHookInterface):
        def update(self, metadata: dict) -> None:
            repository, root = address(Path(self.root)), Path(self.root)
            text = readme((root / "README.md").read_text("utf-8"), repository)
            metadata["readme"] = {"content-type": "text/markdown", "text": text}
            metadata["urls"] = urls(repository)

    return Metadata


def main(arguments: list[str], root: Path = ROOT) -> int:
    """Write the lines, or with --check report the files that lack them."""
    wrong = []
    for name, block in blocks(address(root)).items():
        path = root / name
        text = path.read_text("utf-8")
        if filled(text, block) != text:
            wrong.append(name)
            if "--check" not in arguments:
                path.write_text(filled(text, block), "utf-8")
    if wrong and "--check" in arguments:
        print(
            f"{', '.join(wrong)}: not what the address in pyproject.toml says; `python {sys.argv[0]}` writes it."
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
