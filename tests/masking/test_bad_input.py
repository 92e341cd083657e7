"""Text that is unlike sentences: nothing of it is lost, and it takes neither much time nor much memory."""

import json
import resource
import subprocess
import sys

import pytest

from tasks.cli import main
from tasks.corpora.masked_text import Marker, parse_masked
from tasks.corpora.sidecar import read_sidecar
from tasks.corpora.text_lines import read_lines

UNION = "parts=[{kind: allow_list}, {kind: entity_tagger}]"
TECHNIQUES = {
    **{name: ["--technique", name] for name in ("allow_list", "vocabulary_threshold", "spacy")},
    "union": ["--technique", "combination", "--set", "rule=union", "--set", UNION],
}
LINES = [
    "plain Zoltan Kovacs",
    "",
    " \t ",
    "bell\x07 null\x00 escape\x1b[31m Zoltan\x7f",
    "vertical\x0btab form\x0cfeed next\x85line separators\u2028 and\u2029 Berlin",
    "carriage\rreturn Zoltan",
    "שלום עולם מאנגלה מרקל",
    "\u202eoverride Zoltan\u202c \u2066isolate\u2069 مرحبا",
    "😀😀 👩‍👩‍👧 🇩🇪 Zoltan❤️",
    "soft\u00adhyphen zero\u200bwidth \ufeffmark Zo\u200dltan",
    "e\u0301 ﬁ Ⅷ ß İ ǅ 𝒵ℴ𝓁𝓉𝒶𝓃",
    "[MASK] [\\MASK] [[MASK]] [PERSON]x Zoltan",
    "(((((((((((((((( !!!!!!!!!! ........ ''''",
    "\ue000 private use \U0010ffff noncharacter \ufffd Zoltan",
    "z" * 3000,
    "end Zoltan",
]


@pytest.mark.parametrize("merge", ["true", "false"])
@pytest.mark.parametrize("name", TECHNIQUES)
def test_every_line_comes_out_and_can_be_restored(tmp_path, name, merge):
    text, masked, sidecar = (tmp_path / file for file in ("text.txt", "masked.txt", "sidecar.jsonl"))
    text.write_bytes("".join(f"{line}\n" for line in LINES).encode())
    files = ["--input", text, "--output", masked, "--sidecar", sidecar, "--report", tmp_path / "report.json"]
    assert (
        main(["mask", *TECHNIQUES[name], "--set", f"markers={{style: class, merge: {merge}}}", *map(str, files)]) == 0
    )
    assert list(read_lines(text)) == LINES
    masked_lines, records = list(read_lines(masked)), list(read_sidecar(sidecar))
    assert len(masked_lines) == len(records) == len(LINES)
    for line, masked_line, spans in zip(LINES, masked_lines, records, strict=True):
        stretches = {}
        for span in spans:
            assert line[span.start : span.end] == span.original
            start, _ = stretches.get(span.marker, (span.start, 0))
            stretches[span.marker] = (start, span.end)
        originals = [line[start:end] for start, end in (stretches[index] for index in sorted(stretches))]
        pieces = iter(originals)
        restored = "".join(next(pieces) if isinstance(piece, Marker) else piece for piece in parse_masked(masked_line))
        assert restored == line
    measured = json.loads((tmp_path / "report.json").read_text())["measured"]
    assert measured["lines"] == len(LINES)
    assert measured["empty_lines"] == 2
    assert measured["masked_words"] == sum(map(len, records)) > 0


@pytest.mark.parametrize("name", ["allow_list", "union"])
def test_previewing_them_does_not_steer_the_terminal(tmp_path, capsys, name):
    text = tmp_path / "text.txt"
    text.write_bytes("".join(f"{line}\n" for line in LINES).encode())
    options = ["--lines", "99", "--all-words", "--html", str(tmp_path / "page.html")]
    assert main(["preview", *TECHNIQUES[name], *options, "--input", str(text)]) == 0
    for output in (capsys.readouterr().out, (tmp_path / "page.html").read_text(encoding="utf-8")):
        assert not {character for character in output if character < " "} - {"\n", "\t"}
        assert not set("\x7f\x85\u2028\u2029\u202e\u2066") & set(output)


def test_a_text_with_a_byte_order_mark_and_windows_line_ends(tmp_path, capsys):
    (tmp_path / "text.txt").write_bytes("\ufeffthe Zoltan\r\n\r\nthe end\r\n".encode())
    assert main(["mask", *TECHNIQUES["allow_list"], "--input", str(tmp_path / "text.txt"), "--output", "-"]) == 0
    assert capsys.readouterr().out == "the [MASK]\n\nthe end\n"


LONG_LINES = {
    "sentences": "Tom's a cat; he lives in Paris. ",
    "addresses": "a@",
    "dots": ".",
    "emoji": "😀",
    "right to left": "שלום עולם ",
    "control characters": "\x01a\x02 ",
}


@pytest.mark.parametrize("kind", LONG_LINES)
def test_a_line_of_ten_megabytes_takes_time_in_proportion(tmp_path, kind):
    unit = LONG_LINES[kind]
    size = len(unit.encode())
    with open(tmp_path / "text.txt", "w", encoding="utf-8") as stream:
        stream.write(unit * (10_000_000 // size) + "\nthe end\n")
    command = [sys.executable, "-m", "tasks.cli", "mask", *TECHNIQUES["allow_list"]]
    command += ["--input", str(tmp_path / "text.txt"), "--output", str(tmp_path / "masked.txt")]
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run(command, check=True, capture_output=True)
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 30
    lines = list(read_lines(tmp_path / "masked.txt"))
    assert (len(lines), lines[1]) == (2, "the end")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sentences", "emoji"])
def test_a_long_line_under_a_tagger_takes_no_more_than_its_share_of_memory(tmp_path, kind):
    unit = LONG_LINES[kind]
    with open(tmp_path / "text.txt", "w", encoding="utf-8") as stream:
        stream.write(unit * (500_000 // len(unit.encode())) + "\nAngela Merkel left.\n")
    files = ["--input", tmp_path / "text.txt", "--output", tmp_path / "masked.txt", "--report", tmp_path / "r.json"]
    command = [sys.executable, "-m", "tasks.cli", "mask", *TECHNIQUES["union"], *map(str, files)]
    subprocess.run(command, check=True, capture_output=True)
    assert list(read_lines(tmp_path / "masked.txt"))[1] == "[MASK] [MASK] left."
    assert json.loads((tmp_path / "r.json").read_text())["peak_memory_bytes"] < 1.5e9
