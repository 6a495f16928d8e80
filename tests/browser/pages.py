"""The pages of the built site, and the widths at which they are looked at."""

from pathlib import Path

HTML = Path(__file__).parents[2] / "docs" / "_build" / "html"
PAGES = sorted(
    path.relative_to(HTML).as_posix()
    for path in HTML.rglob("*.html")
    if not path.relative_to(HTML).parts[0].startswith("_")
)
WIDE, PHONE, NARROW = 1300, 390, 320  # CSS pixels
