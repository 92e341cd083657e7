"""Text that is unlike sentences: nothing of it is lost, and it takes neither much time nor much memory."""

import json
import time

import pytest
from restoring import restored

from tasks.cli import main
from tasks.corpora.sidecar import read_sidecar
from tasks.corpora.text_lines import read_lines

UNION = "parts=[{kind: allow_list}, {kind: entity_tagger}]"
ALLOW_LIST = ["mask", "--technique", "allow_list"]
TAGGED = ["mask", "--technique", "combination", "--set", "rule=union", "--set", UNION]
LINES = [
    "plain Zoltan Kovacs", "", " \t ", "bell\x07 null\x00 escape\x1b[31m Zoltan\x7f", "carriage\rreturn Zoltan",
    "vertical\x0btab form\x0cfeed next\x85line separators\u2028 and\u2029 Berlin", "שלום עולם מאנגלה מרקל",
    "\u202eoverride Zoltan\u202c \u2066isolate\u2069 مرحبا", "😀😀 👩‍👩‍👧 🇩🇪 Zoltan❤️",
    "soft\u00adhyphen zero\u200bwidth \ufeffmark Zo\u200dltan", "e\u0301 ﬁ Ⅷ ß İ ǅ 𝒵ℴ𝓁𝓉𝒶𝓃",
    "[MASK] [\\MASK] [[MASK]] [PERSON]x Zoltan", "(((((((((((((((( !!!!!!!!!! ........ ''''",
    "\ue000 private use \U0010ffff noncharacter \ufffd Zoltan", "z" * 3000, "end Zoltan",
]  # fmt: skip


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes("".join(f"{line}\n" for line in LINES).encode())
    return path


@pytest.mark.parametrize(("command", "merge"), [(TAGGED, "true"), (ALLOW_LIST, "false")], ids=["union", "list"])
def test_every_line_comes_out_and_can_be_restored(tmp_path, text, command, merge):
    masked, sidecar, report = (tmp_path / file for file in ("masked.txt", "sidecar.jsonl", "report.json"))
    files = ["--input", text, "--output", masked, "--sidecar", sidecar, "--report", report]
    markers = f"markers={{style: class, merge: {merge}}}"
    assert main([*command, "--set", markers, *map(str, files)]) == 0
    assert list(read_lines(text)) == LINES
    masked_lines, records = list(read_lines(masked)), list(read_sidecar(sidecar))
    assert len(masked_lines) == len(records) == len(LINES)
    assert list(map(restored, LINES, masked_lines, records)) == LINES
    measured = json.loads(report.read_text())["measured"]
    assert measured["lines"] == len(LINES)
    assert measured["empty_lines"] == 2
    assert measured["masked_words"] == sum(map(len, records)) > 0


def test_previewing_them_does_not_steer_the_terminal(tmp_path, text, capsys):
    options = ["--lines", "99", "--all-words", "--html", str(tmp_path / "page.html"), "--input", str(text)]
    assert main(["preview", "--technique", "allow_list", *options]) == 0
    for output in (capsys.readouterr().out, (tmp_path / "page.html").read_text(encoding="utf-8")):
        assert not {character for character in output if character < " "} - {"\n", "\t"}
        assert not set("\x7f\x85\u2028\u2029\u202e\u2066") & set(output)


LONG_LINES = {"sentences": "Tom's a cat; he lives in Paris. ", "addresses": "a@", "emoji": "😀", "signs": "\x01a\x02 "}
LONG_LINES |= {"hosts": "www.", "dots": "a.b@", "figures": "1,", "schemes": "http://", "hyphens": "a-", "snakes": "a_"}


@pytest.mark.parametrize("kind", LONG_LINES)
def test_a_long_line_takes_time_in_proportion(tmp_path, text, kind):
    text.write_text(LONG_LINES[kind] * (300_000 // len(LONG_LINES[kind].encode())) + "\nthe end\n", encoding="utf-8")
    before = time.process_time()
    assert main([*ALLOW_LIST, "--input", str(text), "--output", str(tmp_path / "masked.txt")]) == 0
    assert time.process_time() - before < 2.4  # hours if it were quadratic
    lines = list(read_lines(tmp_path / "masked.txt"))
    assert (len(lines), lines[1]) == (2, "the end")
