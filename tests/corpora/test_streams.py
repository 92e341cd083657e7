"""A pipe as an input or output: read and written once, never hashed, and never lost in part."""

import io
import json
import os
import sys
import threading

import pytest
from stage_commands import settings

from tasks.cli import main
from tasks.corpora import text_lines
from tasks.corpora.text_lines import read_lines, write_lines
from tasks.errors import CorpusError
from tasks.filling import filled_lines

MASKED = "the [MASK] sat\n" * 7
FILL = ["fill", "--method", "unigram", "--word-counts", "counts.tsv", "--report", "report.json"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(filled_lines, "PART_LINES", 2)
    (tmp_path / "masked.txt").write_text(MASKED, encoding="utf-8")
    (tmp_path / "counts.tsv").write_text("the\t90\ndog\t3\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("learning", [[], [*settings("prior=domain"), "--generic", "masked.txt"]], ids=len)
def test_every_line_of_a_pipe_is_filled_also_by_what_learns_from_it(folder, learning):
    assert main([*FILL, *learning, "--input", "masked.txt", "--output", "file.txt"]) == 0
    # As the shell's ``<(...)`` gives it: the reading end of a pipe that has no name.
    reading, writing = os.pipe()
    os.write(writing, MASKED.encode())
    os.close(writing)
    assert main([*FILL, *learning, "--input", f"/dev/fd/{reading}", "--output", "pipe.txt"]) == 0
    os.close(reading)
    assert (folder / "pipe.txt").read_bytes() == (folder / "file.txt").read_bytes()
    report = json.loads((folder / "report.json").read_text())
    assert set(report["inputs"]) == {"counts.tsv", *learning[3:]}
    assert report["measured"]["lines"] == 7


def test_every_line_of_a_named_pipe_is_masked_into_standard_output(folder, capsys):
    os.mkfifo(folder / "pipe")
    for output in ("/dev/stdout", "-"):
        writer = threading.Thread(target=(folder / "pipe").write_text, args=["Ask Zoltan, ok?\n" * 7])
        writer.start()
        options = ["--technique", "allow_list", "--report", "report.json"]
        assert main(["mask", "--input", "pipe", "--output", output, *options]) == 0
        writer.join()
        assert capsys.readouterr().out == "Ask [MASK], ok?\n" * 7
        report = json.loads((folder / "report.json").read_text())
        assert report["inputs"] == report["outputs"] == {}


@pytest.mark.parametrize("line", [b"x" * 2000, b"short\n" + "é".encode() * 700, b"a\nb\n" + b" " * 1001])
@pytest.mark.parametrize("where", ["a.txt", "-", "a.parquet"])
def test_a_line_that_is_no_sentence_is_refused_by_its_number(tmp_path, monkeypatch, line, where):
    monkeypatch.setattr(text_lines, "LONGEST_LINE", 1000)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(line)))
    (tmp_path / "a.txt").write_bytes(line)
    write_lines(tmp_path / "a.parquet", line.decode().split("\n"))
    with pytest.raises(CorpusError, match=rf"line {1 + line.count(10)} is longer than 0 MiB"):
        list(read_lines(where))
