"""Screenshots of the three pages of a run, to be looked at: ``python tests/workflow/screenshots.py FOLDER``.

Each page of ``results/`` at 1400 and 390 px and in dark colours; needs Chromium.
"""

import shutil
import subprocess
import sys
from pathlib import Path

RESULTS = Path(__file__).parents[2] / "results"
VIEWS = {"wide": (1400, 5000, ""), "narrow": (390, 5000, ""), "dark": (1400, 2500, "preferredColorScheme=0")}
"""Width and height in pixels, and a setting of the browser, by name of the view."""


def main() -> None:
    """Write one PNG a page and view into the folder named on the command line."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("Chromium is not installed; install it and run this again")
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for page in ("report", "related", "beyond"):
        for view, (width, height, setting) in VIEWS.items():
            picture = folder / f"{page}_{view}.png"
            # a headless window is at least 500 px wide, so a narrow page is shown in a frame
            frame = f'<iframe src="{(RESULTS / page).resolve().as_uri()}.html" style="border: 0; width: {width}px; '
            holder = folder / "frame.html"
            holder.write_text(f'<body style="margin: 0">{frame}height: {height}px"></iframe>', encoding="utf-8")
            options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
            options += [f"--window-size={width},{height}", f"--screenshot={picture}"]
            options += [f"--blink-settings={setting}"] if setting else []
            subprocess.run([browser, *options, holder.as_uri()], check=True, capture_output=True)
            print(picture)
    holder.unlink()


if __name__ == "__main__":
    main()
