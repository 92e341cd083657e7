"""The review's server and command, and its page in a real Chromium, used by keyboard alone."""

import base64
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from reviewed_corpus import LINES, begin, make_corpus, mark
from starlette.testclient import TestClient
from system_browser import system_chromium

from dashboards.review.server import make_app
from tasks.cli import main
from tasks.review import record

ORIGIN = "http://127.0.0.1:4321"
CHROMIUM = system_chromium()
CUT = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    folder = make_corpus(tmp_path)
    monkeypatch.chdir(folder)
    monkeypatch.delenv("PALIMPSEST_REVIEW_PASSWORD", raising=False)
    return folder


def client(password=None) -> TestClient:
    return TestClient(make_app(begin(), 4321, "token", password), base_url=ORIGIN)


def test_only_the_page_itself_is_answered(corpus):
    asked = client()
    assert asked.get("/token/line").json()["shown"]["line"] == 3
    page = asked.get("/token/")
    assert page.headers["cache-control"] == "no-store"
    assert "default-src 'none'" in page.headers["content-security-policy"]
    saved = {"line": 3, "marks": [], "seconds": 1}
    for method, path, headers in [
        ("GET", "/", {}),
        ("GET", "/line", {}),
        ("GET", "/wrong/line", {}),
        ("GET", "/token/line", {"Host": "evil.example:4321"}),
        ("GET", "/token/line", {"Host": "127.0.0.1:4322"}),
        ("GET", "/token/line", {"Origin": "http://evil.example"}),
        ("GET", "/token/line", {"Origin": "null"}),
        ("GET", "/token/line", {"Sec-Fetch-Site": "cross-site"}),
        ("POST", "/token/save", {}),
        ("POST", "/token/save", {"Origin": "http://127.0.0.1:4322"}),
        ("POST", "/token/undo", {"Origin": "http://evil.example"}),
    ]:
        answer = asked.request(method, path, headers=headers, json=saved if method == "POST" else None)
        assert (answer.status_code, answer.text) == (403, "refused"), (method, path, headers)
    assert begin().own == []
    assert asked.post("/token/save", headers={"Origin": ORIGIN}, json=saved).json()["bound"]["own"] == 1


def test_a_password_is_asked_for_where_there_is_one(corpus):
    asked = client("a password")
    for given, status in [(None, 401), ("a password", 200), ("another", 401), ("é", 401)]:
        encoded = base64.b64encode(f"me:{given}".encode()).decode()
        headers = {} if given is None else {"Authorization": f"Basic {encoded}"}
        assert asked.get("/token/line", headers=headers).status_code == status
    assert asked.get("/token/line", headers={"Authorization": "Basic é".encode()}).status_code == 401


NO_WORD = {"start": 0, "end": 2, "label": "PERSON", "direct": True}


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"line": 3, "marks": [], "seconds": -1}, 400, "no reviewed line"),
        ({"line": 0, "marks": [], "seconds": 1}, 409, "line 1 is not the one to be read now"),
        ({"line": 3, "marks": [NO_WORD], "seconds": 1}, 409, "no word"),
        ({"line": 3, "marks": [NO_WORD | {"start": 3, "end": 6, "label": "X"}], "seconds": 1}, 409, "class 'X'"),
    ],
)
def test_what_is_no_reviewed_line_is_refused(corpus, body, status, message):
    answer = client().post("/token/save", headers={"Origin": ORIGIN}, json=body)
    assert answer.status_code == status
    assert message in answer.json()["error"]
    assert begin().own == []


def test_the_status_and_the_differences_show_no_text(corpus, capsys):
    begin().save(3, [mark(3, "Zoë")], 60.0)
    begin("bob", second=True).save(3, [mark(3, "Tom")], 60.0)
    assert main(["review", "mail/allow_list", "--status"]) == 0
    assert main(["review", "mail/allow_list", "--differences"]) == 0
    shown = capsys.readouterr().out
    assert "mail: 1 of 6 lines read by ann, bob\ntime: 2 minutes in all" in shown
    assert "ann and bob: 1 lines, 6 words; Cohen's kappa -0.20 (marked or not)" in shown
    assert "line 4, 3 to 6: ann PERSON direct, bob not marked" in shown
    assert "Zoë" not in shown


@pytest.fixture
def page_address(corpus):
    """The page as the command opens it; what it printed is held until the end, and holds no text of the corpus."""
    begin()
    code = "import sys; from tasks.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "review", "mail/allow_list", "--reviewer", "ann", "--lines", "3"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        printed = ""
        while "Ctrl-C" not in printed:
            printed += (line := process.stdout.readline())
            assert line, printed
        found = re.search(r"http://127\.0\.0\.1:\d+/\S+/", printed)
        assert found, printed
        yield found.group()
        process.send_signal(signal.SIGINT)
        printed += process.communicate(timeout=60)[0]
        assert process.returncode == 130
    assert "3 lines are read" in printed
    assert not any(word in printed for line in LINES for word in ("Anna", "Rome", "Zoë", "Nothing"))


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")
def test_three_lines_are_reviewed_in_a_browser_by_keyboard_alone(page_address, tmp_path):
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    complaints: list[str] = []
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", CUT])
        # 400 % zoom of a window of 1,280 by 1,024: what WCAG 2.2, 1.4.10, asks to fit without scrolling sideways.
        page = browser.new_page(viewport={"width": 320, "height": 256})
        page.set_default_timeout(60_000)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda r: None if r.url.startswith(page_address) else complaints.append(r.url))

        def press(*keys: str) -> None:
            for key in keys:
                page.keyboard.press(key)

        def line(number: int) -> None:
            page.get_by_role("heading", name=f"Line {number}").wait_for()

        page.goto(page_address)
        line(4)
        box = page.locator(":focus").bounding_box()
        assert box is not None
        assert 0 <= box["y"] < 256, "the word that has the focus is in sight"
        # Zoë is a person, hi is none after all; Tom is one, but a quasi-identifier. Then to see help.
        press("1", "ArrowRight", "ArrowRight", "Space", "Space", "End", "ArrowLeft", "1", "q", "?")
        page.get_by_role("dialog").wait_for()
        press("Escape", "Enter")
        line(1)
        # Anna Smith is suggested; Rome becomes a direct identifier.
        press("End", "d", "Enter")
        line(3)
        # Back to the first line, where Zoë is an organisation now, then forwards again to where we were.
        press("u")
        line(1)
        press("Backspace")
        line(4)
        press("Home", "3", "Enter")
        line(1)
        press("Enter")
        line(3)
        assert page.evaluate("document.documentElement.scrollWidth") == 320
        assert page.evaluate("document.activeElement.className") == "word"
        # Shift takes several words: Nothing to see.
        press("Shift+ArrowRight", "Shift+ArrowRight", "m", "Space", "Enter")
        page.get_by_text("All lines that were asked for are read and saved.").wait_for()
        assert "3; you 3 of 3" in page.locator("#bound").inner_text()
        browser.close()
    assert complaints == []
    assert record.marks_of(record.read(record.path_of("mail"))) == {
        3: (mark(3, "Zoë", "ORGANISATION", False), mark(3, "Tom", direct=False)),
        0: (mark(0, "Anna"), mark(0, "Smith"), mark(0, "Rome", "LOCATION", True)),
        2: (),
    }


def test_nothing_of_the_page_comes_from_elsewhere():
    page = (Path(__file__).parents[2] / "dashboards" / "review" / "page.html").read_text(encoding="utf-8")
    assert not re.search(r"https?://|src=|@import|url\(", page)
