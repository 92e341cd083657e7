import re

import pytest

from tasks.cli import main

TEXT = "We met Zoltan <b>Kovacs</b> & Ann at 5pm.\n\nNothing to see here!\nשלום \x1b[31m\u202e😀 Zoltan\n"


def preview(text, *options):
    assert main(["preview", "--technique", "allow_list", "--input", str(text), *map(str, options)]) == 0


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_words_and_reasons_in_plain_text(text, capsys):
    preview(text, "--set", "markers={style: class, merge: true}")
    output = capsys.readouterr().out
    assert output.startswith("    1  We met Zoltan <b>Kovacs</b> & Ann at 5pm.\n       We met [MASK] <[MASK]>[MASK]</")
    # Word, class, marker and reason of each row below a line.
    found = [re.split(r"  +", row.strip()) for row in output.splitlines() if row.startswith(" " * 9)]
    assert found[0] == ["Zoltan", "MASK", "[MASK]", "not on the allow list of 5,000 words"]
    assert ["5pm", "NUMBER", "[NUMBER]", "not on the allow list of 5,000 words"] in found
    assert "met" not in [row[0] for row in found]
    assert "<U+001B>[31m<U+202E>😀" in output
    assert "in 4 lines" in output


def test_the_page_is_private_whole_and_free_of_other_files(tmp_path, text, capsys):
    page = tmp_path / "preview.html"
    preview(text, "--html", page)
    assert page.stat().st_mode & 0o777 == 0o600
    assert "holds the private text" in capsys.readouterr().err
    content = page.read_text(encoding="utf-8")
    assert not [never for never in ("http", "url(", "src=", "href=", "<b>Kovacs") if never in content]
    assert "This page shows raw private text." in content
    # Each masked word is described by its class, marker and reason.
    described = re.findall(r'aria-describedby="([^"]+)"', content)
    assert len(described) == 6 + 3
    assert all(content.count(f'id="{identifier}"') == 1 for identifier in described)
    assert "Zoltan" in content
    assert content.count("not on the allow list of 5,000 words") >= 9
    preview(text, "--all-words", "--html", page, "--lines", 3)
    assert "on the allow list of 5,000 words" in page.read_text(encoding="utf-8")
    assert len(re.findall("aria-describedby", page.read_text(encoding="utf-8"))) == 9 + 4
