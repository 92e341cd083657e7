import io
import re
import sys
from html.parser import HTMLParser

import pytest

from tasks.cli import main

TEXT = "We met Zoltan <b>Kovacs</b> & Ann at 5pm.\n\nNothing to see here!\nשלום \x1b[31m\u202e😀 Zoltan\n"


def preview(*arguments):
    *options, text = map(str, arguments)
    return main(["preview", *options, "--input", text])


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def rows(output):
    """Word, class, marker and reason of each row below a line."""
    return [re.split(r"  +", row.strip()) for row in output.splitlines() if row.startswith(" " * 9)]


def test_words_and_reasons_in_plain_text(text, capsys):
    assert preview("--technique", "allow_list", "--set", "markers.style=class", text) == 0
    output = capsys.readouterr().out
    assert output.startswith("    1  We met Zoltan <b>Kovacs</b> & Ann at 5pm.\n       We met [MASK] <[MASK]>[MASK]</")
    assert "\x1b" not in output
    found = rows(output)
    assert found[0] == ["Zoltan", "MASK", "[MASK]", "not on the allow list of 5,000 words"]
    assert ["5pm", "NUMBER", "[NUMBER]", "not on the allow list of 5,000 words"] in found
    assert "met" not in [row[0] for row in found]
    assert "<U+001B>[31m<U+202E>😀" in output
    assert "in 4 lines" in output


def test_colours_on_a_terminal_alone(text, monkeypatch):
    class Terminal(io.TextIOWrapper):
        def isatty(self):
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    terminal = Terminal(io.BytesIO(), encoding="utf-8")
    monkeypatch.setattr(sys, "stdout", terminal)
    assert preview("--technique", "allow_list", "--lines", 4, text) == 0
    terminal.flush()
    output = terminal.buffer.getvalue().decode()
    assert re.search(r"\x1b\[[\d;]*m*Zoltan\x1b\[0m", output)
    # The text's own escape sequence does not reach the terminal.
    assert "<U+001B>[31m" in re.sub(r"\x1b\[[\d;]*m", "", output)


class Page(HTMLParser):
    """Tags without an end, addresses of other files, and the words with their reasons."""

    def __init__(self, page):
        super().__init__()
        self.open, self.links, self.words, self.ids = [], [], [], set()
        self._collecting = None
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag not in ("meta", "br", "link", "img"):
            self.open.append(tag)
        self.links += [value for name, value in attributes.items() if name in ("src", "href")]
        if "word" in attributes.get("class", "").split():
            assert attributes["tabindex"] == "0"
            self.words.append([attributes["aria-describedby"], ""])
        if "id" in attributes:
            assert attributes["id"] not in self.ids
            self.ids.add(attributes["id"])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.words:
            self.words[-1][1] += data


def test_the_page_is_private_whole_and_free_of_other_files(tmp_path, text, capsys):
    page = tmp_path / "preview.html"
    assert preview("--technique", "allow_list", "--html", page, text) == 0
    assert page.stat().st_mode & 0o777 == 0o600
    assert "holds the private text" in capsys.readouterr().err
    content = page.read_text(encoding="utf-8")
    parsed = Page(content)
    assert parsed.open == parsed.links == []
    assert "http" not in content
    assert "url(" not in content
    assert "<b>Kovacs" not in content
    assert "&lt;<mark" in content
    assert "This page shows raw private text." in content
    assert "prefers-color-scheme: dark" in content
    assert len(parsed.words) == 6 + 3
    assert {identifier for identifier, _ in parsed.words} <= parsed.ids
    assert parsed.words[0][1].startswith("ZoltanMASK[MASK]not on the allow list of 5,000 words")

    # With the reasons of all other words.
    assert preview("--technique", "allow_list", "--all-words", "--html", page, "--lines", 3, text) == 0
    parsed = Page(page.read_text(encoding="utf-8"))
    assert len(parsed.words) == 9 + 4
    assert parsed.words[0][1].startswith("Wekepton the allow list of 5,000 words")


def test_standard_input_and_only_the_lines_asked_for(monkeypatch, capsys):
    stream = io.BytesIO(b"Ask Zoltan\n" * 3 + b"\xff\n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stream))
    assert preview("--technique", "allow_list", "--lines", 2, "-") == 0
    assert "2 of 4 words masked (50.0%) in 2 lines" in capsys.readouterr().out
