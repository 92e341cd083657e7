"""The picture in the README: the report page of the experiment in this folder.

    python -m dashboards.screenshots                    into docs/screenshots
    python -m dashboards.screenshots --output /tmp      elsewhere

Needs a finished experiment, Playwright (extra ``development``) and a Chromium of the system; nothing is fetched. The
review page has no picture: it shows private text.
"""

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tasks import telemetry
from tasks.errors import CorpusError, PalimpsestError, ResourceError
from tasks.files.atomic_file import make_folder

if TYPE_CHECKING:
    from playwright.sync_api import ViewportSize

REPORT = Path("results") / "report.html"
_SIZE: "ViewportSize" = {"width": 1280, "height": 1150}


def chromium() -> str | None:
    """Path of the system's Chromium; ``None`` where there is none."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def take(output: Path) -> Path:
    """Take the picture and return its path.

    Raises ``ResourceError`` where Chromium is missing, and ``CorpusError`` where there is no report page.
    """
    from playwright.sync_api import sync_playwright

    program = chromium()
    if program is None:
        raise ResourceError("there is no Chromium on this machine; install it with the system's packages")
    if not REPORT.is_file():
        raise CorpusError(f"{str(REPORT)!r} does not exist; run 'palimpsest run' first")
    path = make_folder(output) / "report.png"
    with sync_playwright() as playwright:
        # Without it, Chromium refuses to run as root, as it does in containers.
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport=_SIZE, color_scheme="light")
        page.goto(REPORT.absolute().as_uri())
        page.wait_for_timeout(1000)
        page.screenshot(path=path)
        browser.close()
    return path


def main(argv: Sequence[str] | None = None) -> int:
    """Take the picture; 1 where that cannot be done."""
    parser = argparse.ArgumentParser(
        prog="python -m dashboards.screenshots",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--output", type=Path, default=Path("docs") / "screenshots", metavar="FOLDER", help="default: %(default)s"
    )
    arguments = parser.parse_args(argv)
    telemetry.switch_off()
    try:
        print(take(arguments.output))
    except PalimpsestError as error:
        print(f"palimpsest: error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
