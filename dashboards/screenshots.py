"""The pictures in the README: the report page and the app's views of the experiment in this folder.

    python -m dashboards.screenshots                    into docs/screenshots
    python -m dashboards.screenshots --output /tmp      elsewhere

Needs a finished experiment, Playwright (extra ``development``) and a Chromium of the system; nothing is fetched.
"""

import argparse
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dashboards.services.running_service import start, wait_until_ready
from dashboards.services.service import app_service, free_port
from tasks import telemetry
from tasks.errors import CorpusError, PalimpsestError, ResourceError
from tasks.files.atomic_file import make_folder

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ViewportSize

REPORT = Path("results") / "report.html"
VIEWS = {
    "results": "?measure=Perplexity%2C+words+of+the+vocabulary",
    "compare": "?view=compare",
    "follow": "?view=follow&live=false",
}
"""Names of the pictures and the addresses of the app that they show."""
_SIZE: "ViewportSize" = {"width": 1280, "height": 1150}
_START_SECONDS = 120.0


def chromium() -> str | None:
    """Path of the system's Chromium; ``None`` where there is none."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def take(output: Path) -> list[Path]:
    """Take all pictures and return their paths.

    Raises ``ResourceError`` where Chromium is missing, and ``CorpusError`` where there is no report page.
    """
    from playwright.sync_api import sync_playwright

    program = chromium()
    if program is None:
        raise ResourceError("there is no Chromium on this machine; install it with the system's packages")
    if not REPORT.is_file():
        raise CorpusError(f"{str(REPORT)!r} does not exist; run 'palimpsest run' first")
    make_folder(output)
    # Under a name of its own: an app that 'palimpsest up' has started stays as it is.
    service = start(replace(app_service(free_port(), None), name="screenshots"), Path.cwd())
    try:
        if not wait_until_ready(service, _START_SECONDS):
            raise ResourceError(f"the app did not start; its output is in {service.log!r}")
        with sync_playwright() as playwright:
            # Without it, Chromium refuses to run as root, as it does in containers.
            browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
            paths = [_picture(browser, REPORT.absolute().as_uri(), output / "report.png")]
            paths += [
                _picture(browser, f"{service.address}/{query}", output / f"app_{name}.png", of_app=True)
                for name, query in VIEWS.items()
            ]
            browser.close()
    finally:
        service.stop(Path.cwd())
    return paths


def _picture(browser: "Browser", url: str, path: Path, of_app: bool = False) -> Path:
    page = browser.new_page(viewport=_SIZE, color_scheme="light")
    page.set_default_timeout(_START_SECONDS * 1000)
    page.goto(url)
    if of_app:
        page.locator("[data-testid=stVegaLiteChart] svg.marks").first.wait_for()
        page.locator("[data-testid=stDataFrame] canvas").first.wait_for()
        # Streamlit says that it runs until its script has ended.
        page.locator("[data-testid=stStatusWidget]").wait_for(state="detached")
    page.wait_for_timeout(1000)
    page.screenshot(path=path)
    page.close()
    return path


def main(argv: Sequence[str] | None = None) -> int:
    """Take the pictures; 1 where that cannot be done."""
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
        for path in take(arguments.output):
            print(path)
    except PalimpsestError as error:
        print(f"palimpsest: error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
