"""The app and the report page in a real Chromium whose network is cut."""

import csv
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from dashboards.screenshots import chromium as system_chromium
from dashboards.services.running_service import start, wait_until_ready
from dashboards.services.service import app_service, free_port
from dashboards.services.starting import start_services, stop_services
from tasks.parameters.parameter_file import read_parameters
from tasks.records.cell import Cell
from tasks.results.tracking.tracking_store import locked_store

pytest.importorskip("streamlit")
sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")


CHROMIUM = system_chromium()
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")

ROOT = Path(__file__).parents[3]
PATIENCE = 60_000
"""Milliseconds: a test machine may be busy."""
CUT = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
OURS = ("http://127.0.0.1:", "ws://127.0.0.1:", "file://", "data:", "blob:")


@dataclass
class Watched:
    """A page, and what it should not have done."""

    page: "sync_api.Page"
    complaints: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        page, complaints = self.page, self.complaints
        page.on("console", lambda m: complaints.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda r: None if r.url.startswith(OURS) else complaints.append(f"request {r.url}"))


@pytest.fixture(scope="module")
def chromium():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", CUT])
        yield browser
        browser.close()


@pytest.fixture
def opened(chromium):
    @contextmanager
    def open_page(url: str, **options) -> Iterator["sync_api.Page"]:
        context = chromium.new_context(viewport={"width": 1400, "height": 1200}, **options)
        context.set_default_timeout(PATIENCE)
        watched = Watched(context.new_page())
        watched.page.goto(url)
        yield watched.page
        context.close()
        assert watched.complaints == []

    return open_page


@pytest.fixture(scope="module")
def project(published, tmp_path_factory):
    """A copy of the published experiment that these tests may add runs to."""
    folder = shutil.copytree(published, tmp_path_factory.mktemp("browser") / "an experiment")
    text = (folder / "params.yaml").read_text(encoding="utf-8")
    (folder / "params.yaml").write_text(text.replace(str(published), str(folder)), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def address(project):
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        service = start(app_service(free_port(), None), project)
    try:
        assert wait_until_ready(service, 120)
        yield service.address
    finally:
        service.stop(project)


def test_the_report_page_loads_with_the_network_cut(published, opened):
    with opened((published / "results" / "report.html").as_uri()) as page:
        assert page.locator("h1").count() == 1
        assert page.get_by_text("427.0").first.is_visible()
        assert page.locator("svg").count() > 3


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_report_page_fits_a_telephone_and_paper(published, opened, tmp_path, scheme):
    with opened((published / "results" / "report.html").as_uri(), color_scheme=scheme) as page:
        page.set_viewport_size({"width": 390, "height": 800})
        page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
        # Wide tables scroll inside the page, which itself does not.
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        page.emulate_media(media="print")
        paper = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--paper')")
        assert paper == "#fff"
        page.pdf(path=tmp_path / "report.pdf", prefer_css_page_size=True, format="A4")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_loads_with_the_network_cut(address, opened, scheme):
    for view, heading in (("results", "Results"), ("compare", "Compare two runs"), ("follow", "Follow")):
        with opened(f"{address}/?view={view}", color_scheme=scheme) as page:
            page.get_by_role("heading", name=heading, level=1).wait_for()
            page.locator("[data-testid=stVegaLiteChart] svg.marks").first.wait_for()
            page.locator("[data-testid=stDataFrame]").last.wait_for()
            assert page.locator("[data-testid=stAlert]").count() == 0


@pytest.mark.slow
def test_plots_fit_a_telephone(address, opened):
    with opened(address) as page:
        page.set_viewport_size({"width": 390, "height": 800})
        page.reload()
        plots = page.locator("[data-testid=stVegaLiteChart] svg.marks")
        sync_api.expect(plots).to_have_count(2)
        page.wait_for_timeout(2000)
        boxes = [plot.bounding_box() for plot in plots.all()]
        assert all(box["x"] >= 0 and box["x"] + box["width"] <= 390 for box in boxes)
        assert boxes[0]["width"] > 250
        # Below each other.
        assert boxes[1]["y"] > boxes[0]["y"] + boxes[0]["height"]


@pytest.mark.slow
def test_sentences_of_two_runs_are_downloaded_as_numbers(address, opened, tmp_path):
    runs = "a=chat/allow_list/baseline1-1&b=chat/allow_list/minilm-sample-1"
    with opened(f"{address}/?view=compare&{runs}") as page:
        page.get_by_text("B has the lower perplexity").wait_for()
        with page.expect_download() as download:
            page.get_by_role("button", name="Download sentences.csv").click()
        download.value.save_as(tmp_path / "sentences.csv")
    with (tmp_path / "sentences.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert sorted(int(row["line"]) for row in rows) == list(range(1, 51))
    assert list(rows[0]) == ["line", "targets", "perplexity_a", "perplexity_b", "difference", "weight"]
    assert all(float(value) is not None for row in rows for value in row.values())


@pytest.mark.slow
def test_the_curve_of_a_training_run_grows(address, project, opened):
    from mlflow.entities import Metric

    tracking = read_parameters(project / "params.yaml").tracking
    cell = Cell("chat", "allow_list", "top_k", "minilm", 1)
    with locked_store(tracking) as store:
        run, made = store.find_or_make(cell, f"{cell.path}#feedfeedfeed")
    assert made

    def log(*points: tuple[int, float]) -> None:
        now = int(time.time() * 1000)
        metrics = [Metric("train_loss", value, now, step) for step, value in points]
        store.client.log_batch(run.info.run_id, metrics=metrics)

    log((10, 6.5), (20, 6.0))
    try:
        with opened(f"{address}/?view=follow") as page:
            page.get_by_text("6.000 at step 20").wait_for()
            marks = page.locator("[data-testid=stVegaLiteChart] .mark-symbol.role-mark path")
            sync_api.expect(marks).to_have_count(2, timeout=PATIENCE)
            log((30, 5.5), (40, 5.25))
            page.get_by_text("5.250 at step 40").wait_for()
            sync_api.expect(marks).to_have_count(4, timeout=PATIENCE)
            assert page.locator("[data-testid=stMetric]", has_text="training").inner_text().split() == ["training", "1"]
    finally:
        store.client.set_terminated(run.info.run_id, status="KILLED")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_interfaces_of_prefect_and_mlflow_ask_nobody_else(project, chromium, monkeypatch):
    for name in ("MLFLOW_TRACKING_URI", "PREFECT_API_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PREFECT_HOME", str(project / "prefect"))
    monkeypatch.setenv("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
    ports = {"prefect": free_port(), "mlflow": free_port()}
    tracking = read_parameters(project / "params.yaml").tracking
    try:
        shown = start_services(project, list(ports), ports, tracking)
        page = chromium.new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        for service, path in zip(shown, ("dashboard", "#/experiments/1/runs"), strict=True):
            page.goto(f"{service.address}/{path}", timeout=PATIENCE)
            # Both ask their servers again and again, so the network is never idle.
            page.wait_for_timeout(8000)
        page.close()
    finally:
        stop_services(project, list(ports))
    assert len(asked) > 20
    assert [url for url in asked if not url.startswith(OURS)] == []
