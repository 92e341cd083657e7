"""Lines of text as they come: from pipes and compressed files, which are neither lost in part nor too long."""

import bz2
import gzip
import io
import json
import lzma
import os
import sys
import threading
import tracemalloc

import pytest
import zstandard
from stage_commands import settings

from tasks.cli import main
from tasks.corpora import text_lines
from tasks.corpora.sources import compressed_lines
from tasks.corpora.sources.compressed_lines import read_compressed_lines
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


LINES = ["first line", "second, with an é", "", "last line"]
TEXT = ("\n".join(LINES) + "\n").encode()


def lzw(text):
    """What the old ``compress`` writes for a text of less than 250 bytes that repeats nothing: literals of 9 bits."""
    bits = 0
    for position, byte in enumerate(text):
        bits |= byte << 9 * position
    return b"\x1f\x9d\x90" + bits.to_bytes((9 * len(text) + 7) // 8, "little")


def long_window(text):
    """As ``zstd --long=31`` does it: the frame asks for a window of 2 GiB."""
    parameters = zstandard.ZstdCompressionParameters(window_log=31, enable_ldm=False)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return compressor.compress(text) + compressor.flush()


COMPRESSIONS = {
    "plain": bytes, "gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress, "compress": lzw,
    "zstandard": zstandard.compress, "zstandard with a long window": long_window,
    "zstandard in two frames": lambda text: zstandard.compress(text[:15]) + zstandard.compress(text[15:]),
}  # fmt: skip


def lines_of(path, content):
    path.write_bytes(content)
    return list(read_compressed_lines(path))


def test_every_compression_gives_the_same_lines(tmp_path):
    for compressed in COMPRESSIONS.values():
        assert lines_of(tmp_path / "file", compressed(TEXT)) == LINES


DAMAGED = {name: COMPRESSIONS[name](TEXT)[:-6] for name in ("gzip", "bzip2", "xz", "zstandard")}
# It has no end mark: only a cut inside its head is noticed.
DAMAGED["compress"] = COMPRESSIONS["compress"](TEXT)[:2]


def test_a_file_that_is_damaged_is_an_error(tmp_path):
    for content in DAMAGED.values():
        with pytest.raises(CorpusError, match=r"is damaged or cut off after line \d .*; fetch it again"):
            lines_of(tmp_path / "file", content)


def test_bytes_that_are_no_text_are_not_quoted(tmp_path):
    with pytest.raises(CorpusError, match="line 2: byte 8") as caught:
        lines_of(tmp_path / "file", gzip.compress(b"good\nsecret \xff\n"))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("name", ["gzip", "zstandard with a long window"])
@pytest.mark.parametrize(
    ("bomb", "message"),
    [
        (b"short\n" + b"x" * (1 << 25), "line 2 is longer than 2 MiB"),
        (b"x" * 999_999 + b"\n", None),
        ((b"x" * 9999 + b"\n") * (1 << 12), r"line \d+ is where more than 200 times the file's size has come out"),
    ],
)
def test_a_small_file_does_not_fill_the_memory(tmp_path, monkeypatch, name, bomb, message):
    for module in (text_lines, compressed_lines):
        monkeypatch.setattr(module, "LONGEST_LINE", 1 << 21)
    content = COMPRESSIONS[name](bomb)
    if message is None:
        assert lines_of(tmp_path / "file", content)
        return
    tracemalloc.start()
    with pytest.raises(CorpusError, match=f"{tmp_path}/file.*{message}; if it is text, decompress"):
        lines_of(tmp_path / "file", content)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 25
