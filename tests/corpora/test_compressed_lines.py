import bz2
import gzip
import lzma

import pytest
import zstandard

from tasks.corpora.sources.compressed_lines import read_compressed_lines
from tasks.errors import CorpusError

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
    "plain": bytes,
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstandard": zstandard.compress,
    "zstandard with a long window": long_window,
    "zstandard in two frames": lambda text: zstandard.compress(text[:15]) + zstandard.compress(text[15:]),
    "compress": lzw,
}


@pytest.mark.parametrize("name", COMPRESSIONS)
def test_every_compression_gives_the_same_lines(tmp_path, name):
    (tmp_path / "file").write_bytes(COMPRESSIONS[name](TEXT))
    assert list(read_compressed_lines(tmp_path / "file")) == LINES


@pytest.mark.parametrize("name", ["gzip", "bzip2", "xz", "zstandard", "compress"])
def test_a_file_that_is_cut_off_is_an_error(tmp_path, name):
    whole = COMPRESSIONS[name](TEXT)
    # compress has no end mark: only what breaks inside its head can be told.
    (tmp_path / "file").write_bytes(whole[:2] if name == "compress" else whole[:-6])
    with pytest.raises(CorpusError, match=r"is damaged or cut off behind line \d .*; fetch it again"):
        list(read_compressed_lines(tmp_path / "file"))


def test_bytes_that_are_no_zstandard_are_an_error(tmp_path):
    (tmp_path / "file").write_bytes(zstandard.compress(TEXT)[:8] + b"\xff" * 40)
    with pytest.raises(CorpusError, match="is damaged or cut off behind line 0"):
        list(read_compressed_lines(tmp_path / "file"))


def test_text_that_is_not_utf8_is_named_by_its_line(tmp_path):
    (tmp_path / "file").write_bytes(gzip.compress(b"good\nsecret \xff\n"))
    with pytest.raises(CorpusError, match="line 2: byte 8") as caught:
        list(read_compressed_lines(tmp_path / "file"))
    assert "secret" not in str(caught.value)


def test_reading_can_stop_early(tmp_path):
    (tmp_path / "file").write_bytes(lzw(TEXT))
    lines = read_compressed_lines(tmp_path / "file")
    assert next(lines) == LINES[0]
    lines.close()
