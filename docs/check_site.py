"""Check that a built site has no dead link and loads nothing from elsewhere.

Every link within the site must lead to a file, and to an anchor that is there. Scripts, styles,
fonts and pictures must be files of the site, so that it works where there is no network; links that
a reader follows may lead anywhere.
"""

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"script", "img", "link", "source", "iframe", "video", "audio", "embed"}
NOT_LOADED = {"next", "prev", "index", "search", "canonical"}
"""What a ``link`` element only names."""


class Page(HTMLParser):
    """Anchors, links and loaded files of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the names and links of an element."""
        given = {key: value or "" for key, value in attrs}
        self.anchors |= {given[key] for key in ("id", "name") if key in given}
        for key in ("href", "src"):
            if key in given:
                self.links.append(given[key])
                if tag in LOADED and given.get("rel") not in NOT_LOADED:
                    self.loads.append(given[key])


def faults(site: Path) -> Iterator[str]:
    """Yield one sentence for each fault."""
    pages = {path.resolve(): Page(path) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        where = path.relative_to(site.resolve())
        yield from (f"{where} loads {name}" for name in page.loads if urlsplit(name).netloc)
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            fragment = unquote(parts.fragment)
            if not target.exists():
                yield f"{where}: {link} leads nowhere"
            elif fragment and target in pages and fragment not in pages[target].anchors:
                yield f"{where}: {link} has no such anchor"
    for style in site.rglob("*.css"):
        text = style.read_text(encoding="utf-8")
        for name in re.findall(r"(?:url\(|@import\s+)[\"']?((?:https?:)?//[^\"')\s]+)", text):
            yield f"{style.relative_to(site)} loads {name}"


def main() -> int:
    """Print the faults of the site that the command line names; exit code 1 if there are any."""
    site = Path(sys.argv[1])
    faulty = sorted(set(faults(site)))
    print(*faulty, sep="\n", end="\n" if faulty else "")
    if not faulty:
        pages = len(list(site.rglob("*.html")))
        print(f"{site}/index.html: {pages} pages, no dead link, nothing loaded from elsewhere")
    return bool(faulty)


if __name__ == "__main__":
    sys.exit(main())
