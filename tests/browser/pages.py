"""The pages of the built site, and the widths at which they are looked at."""

import datetime
import os
from pathlib import Path

HTML = Path(__file__).parents[2] / "docs" / "_build" / "html"
PAGES = sorted(
    path.relative_to(HTML).as_posix()
    for path in HTML.rglob("*.html")
    if not path.relative_to(HTML).parts[0].startswith("_")
)
WIDE, PHONE, NARROW = 1300, 390, 320  # CSS pixels
if share := int(os.environ.get("BROWSER_SHARE", "1")) - 1:
    # One page in so many, others each day, and those that everybody meets.
    day = datetime.datetime.now(tz=datetime.UTC).toordinal()
    PAGES = sorted(
        {*PAGES[day % (share + 1) :: share + 1], "index.html", "ten-minutes.html", "howto/index.html"}
    )
