"""No word of the private text stands in what servers keep, what pages show, what is logged, or what leaves.

The planted words are of three kinds: names that both techniques of this experiment mask; words that one masks and the
other keeps; and lines of common words that both keep, in an order that no other text has. The second and third stand in
masked and filled text by design, and so in what is trained on it: those outputs are private, as ``dvc.yaml`` says of
each, and nothing else may hold a canary of any kind.
"""

import json
import re
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from planted_experiment import BAD_LINE, CANARIES, KEPT_BY_ONE, KEPT_LINES, NAME, private_outputs
from prefect_server import ask, log_in_to_page
from system_browser import system_chromium
from unpacking import pieces

from dashboards.services.services import make_passwords

pytestmark = [pytest.mark.slow, pytest.mark.timeout(2400)]
PRIVATE_PLACES = ("data/raw/", "data/private/", ".dvc/cache/")
"""Closed folders; the outputs that are not pushed lie beside them."""
QUOTING_LOG = ".palimpsest/logs/quoting.log"
"""What a program of the user's own printed, who let it quote the text."""
BAD_LINES = ("gold@mail", "quoting")
PATIENCE = 120_000
"""Milliseconds: a test machine may be busy."""


@pytest.mark.parametrize(("technique", "kept"), [("allow_list", KEPT_LINES), ("tagger", KEPT_BY_ONE + KEPT_LINES)])
def test_the_canaries_are_of_three_kinds(lived, search, technique, kept):
    masked = lived.folder / "data" / "private" / "masked" / "mail" / "train" / technique / "text.txt"
    assert search.found_in(masked.read_bytes()) == sorted(kept)


def test_the_private_places_hold_the_canaries(lived, search):
    for place, held in (("data/private", set(CANARIES) - set(KEPT_LINES)), (".dvc/cache", set(CANARIES))):
        parts = [content for _, content in pieces(lived.folder / place)]
        assert held <= set().union(*map(search.found_in, parts))


def test_no_file_beside_them_holds_one(lived, search):
    """Reports, summary, page, dvc.lock, both databases, artifacts, logs of stages and services, names of files, git."""
    held, searched = search.holders(lived.folder, [*PRIVATE_PLACES, *private_outputs(lived.folder), QUOTING_LOG])
    assert searched > 200
    assert held == []
    results = ("results/summary.json", "results/report.html")
    for name in (*results, "dvc.lock", "mlflow.db", ".palimpsest/prefect/prefect.db"):
        assert (lived.folder / name).stat().st_size > 1000
    for folder in (lived.home, lived.temporary):
        assert search.holders(folder)[0] == []


def test_runs_and_services_write_into_the_checkout_and_temporary_files_alone(lived):
    """DVC's tables in /var/tmp/dvc were open to every user."""
    assert len([path for path in lived.written if path.is_relative_to(lived.folder)]) > 200
    allowed = (lived.folder, lived.temporary, lived.remote, Path("/dev"), Path("/proc"))
    outside = [path for path in lived.written if not any(map(path.is_relative_to, allowed))]
    assert [path for path in outside if not path.is_relative_to(lived.home)] == []
    assert {path.relative_to(lived.home).parts[:1] for path in outside} == set()


def test_only_what_a_program_of_the_users_quotes_stands_in_its_own_closed_log(lived, search):
    log = lived.folder / QUOTING_LOG
    assert search.found_in(log.read_bytes()) == [NAME]
    assert stat.S_IMODE(log.parent.stat().st_mode) & 0o077 == 0


def test_nothing_printed_holds_one(lived, search):
    assert sum(map(len, lived.said)) > 1000
    assert [search.found_in(text) for text in lived.said] == [[]] * len(lived.said)


def test_the_stages_that_met_a_bad_line_say_where_and_not_what(lived, search):
    failed = {
        task["name"]: task["state"]["message"]
        for task in ask(f"{lived.address('prefect')}/api", "/task_runs/filter", {"sort": "EXPECTED_START_TIME_DESC"})
        if task["state"]["type"] == "FAILED"
    }
    assert set(failed) == set(BAD_LINES)
    assert any(f"corpora.mail: {lived.folder}/data/raw/mail.txt: line {BAD_LINE}: " in said for said in lived.said)
    assert "line 19" in failed["gold@mail"]
    assert "its command ended with status 1" in failed["quoting"]
    assert search.found_in(json.dumps(failed)) == []


def test_nothing_private_was_pushed(lived, search):
    held, searched = search.holders(lived.remote)
    assert searched > 50
    assert held == []
    # Private outputs are in the cache, and in no copy of it.
    pushed = {path.parent.name + path.name for path in lived.remote.rglob("*") if path.is_file()}
    private = search.holders(lived.folder / ".dvc" / "cache")[0]
    assert len(private) >= 4
    assert pushed.isdisjoint("".join(name.split("/")[-2:]) for name in private)


def test_the_databases_that_were_searched_are_not_empty(lived):
    """Logs, states, parameters, metrics, tags: their cells are unpacked with the files."""
    counts = {}
    for name in ("mlflow.db", ".palimpsest/prefect/prefect.db"):
        with sqlite3.connect(f"file:{lived.folder / name}?mode=ro", uri=True) as store:
            tables = [row[0] for row in store.execute("select name from sqlite_master where type = 'table'")]
            counts |= {table: store.execute(f'select count(*) from "{table}"').fetchone()[0] for table in tables}
    assert min(counts[table] for table in ("runs", "metrics", "tags", "params", "flow_run", "task_run", "log")) > 0


def passing_on(kept: list[bytes | str]) -> Callable:
    """A handler that answers a page's requests and notes address and content: a browser drops them with the page."""

    def handle(route) -> None:
        kept.append(route.request.url)
        if route.request.resource_type not in ("document", "fetch", "xhr"):
            route.continue_()
            return
        answer = route.fetch(timeout=PATIENCE)
        if answer.ok:
            kept.append(answer.body())
        route.fulfill(response=answer)

    return handle


@pytest.fixture(scope="module")
def seen(lived) -> dict[str, list[bytes | str]]:
    """All that a Chromium was sent and shows: pages, answers, frames of web sockets, downloads."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if system_chromium() is None:
        pytest.skip("there is no Chromium on this machine")
    api = f"{lived.address('prefect')}/api"
    flow_runs = [run["id"] for run in ask(api, "/flow_runs/filter", {})]
    with sqlite3.connect(f"file:{lived.folder / 'mlflow.db'}?mode=ro", uri=True) as store:
        run = store.execute("select run_uuid from tags where key = 'method' and value = 'top_k'").fetchone()[0]
    mlflow, prefect = (lived.address(name) for name in ("mlflow", "prefect"))
    made = make_passwords(lived.folder)
    login = {"username": made["MLFLOW_TRACKING_USERNAME"], "password": made["MLFLOW_TRACKING_PASSWORD"]}
    login["origin"] = mlflow
    addresses = {
        "report": [(lived.folder / "results" / "report.html").as_uri()],
        "mlflow": [f"{mlflow}/#/experiments/1/runs{place}" for place in ("", f"/{run}", f"/{run}/artifacts")],
        "prefect": [f"{prefect}/{place}" for place in ("runs", *(f"runs/flow-run/{name}" for name in flow_runs))],
    }
    found: dict[str, list[bytes | str]] = {}
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=system_chromium(), args=["--no-sandbox"])
        for name, pages in addresses.items():
            kept: list[bytes | str] = found.setdefault(name, [])
            for address in pages:
                page = browser.new_page(viewport={"width": 1400, "height": 1400}, http_credentials=login)
                page.set_default_timeout(PATIENCE)
                page.on("console", lambda message, kept=kept: kept.append(message.text))
                page.on(
                    "websocket", lambda socket, kept=kept: socket.on("framereceived", lambda frame: kept.append(frame))
                )
                page.route(re.compile("https?://"), passing_on(kept))
                if name == "prefect":
                    log_in_to_page(page, prefect)
                page.goto(address)
                page.wait_for_timeout(6000 if name in ("mlflow", "prefect") else 500)
                kept += [page.content(), page.locator("body").inner_text(), page.title(), page.url]
                page.unroute_all(behavior="wait")
                page.close()
        browser.close()
    return found


@pytest.mark.parametrize(
    ("place", "shown"), [("report", "Word error rate"), ("mlflow", "top_k"), ("prefect", "gold@mail")]
)
def test_no_page_is_sent_or_shows_one(seen, search, place, shown):
    pieces = [piece.encode() if isinstance(piece, str) else piece for piece in seen[place]]
    assert sum(map(len, pieces)) > 20_000
    assert [found for piece in pieces if (found := search.found_in(piece))] == []
    # A page that failed to load would hold no canary either.
    assert any(shown.encode() in piece for piece in pieces)
