"""A folder of Parquet files is read and written as the lines of plain text are."""

import tracemalloc
from itertools import chain
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from command_results import refusal, report

from tasks.corpora import parquet_lines
from tasks.corpora.text_lines import line_writer, read_lines, write_lines
from tasks.errors import CorpusError
from tasks.records.stage_report import content_hash

SECRET = "Zebulon"


def write_table(path, **columns):
    path.parent.mkdir(exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.table(columns), path)


@pytest.mark.parametrize(
    "content",
    [
        "", "\n", "one\n\nthree\n", "one\nno last line end", "\ufeffmarked\r\nWindows\r\n\r\n",
        "a\x85b\u2028c\x0bd\re\n\x00 😀 e\u0301\n", "".join(f"{number}\n" for number in range(57)),
        "z" * 5000 + "\n" + "y\n" * 30,
    ],
)  # fmt: skip
def test_lines_are_those_of_plain_text(tmp_path, monkeypatch, content):
    for name, size in {"GROUP_LINES": 5, "GROUP_BYTES": 64, "FILE_LINES": 20, "FILE_BYTES": 1000}.items():
        monkeypatch.setattr(parquet_lines, name, size)
    for name in ("plain.txt", "rows.parquet", "again.parquet"):
        with line_writer(tmp_path / name) as stream:
            for start in range(0, len(content), 7):
                stream.write(content[start : start + 7])
    lines, folder = list(read_lines(tmp_path / "plain.txt")), tmp_path / "rows.parquet"
    assert list(read_lines(folder)) == lines
    tables = [pyarrow.parquet.read_table(file) for file in sorted(folder.iterdir())]
    assert [row for table in tables for row in table.column("id").to_pylist()] == [*range(1, len(lines) + 1)]
    assert content_hash(folder) == content_hash(tmp_path / "again.parquet")
    assert max(table.num_rows for table in tables) < 20 + 5
    assert len(tables) >= len(lines) / 25


def test_a_private_folder_is_complete_or_not_there(tmp_path):
    path = tmp_path / "rows.parquet"
    with pytest.raises(KeyError):
        write_lines(path, chain([SECRET] * 50_000, map({}.__getitem__, "x")), private=True)
    assert not list(tmp_path.iterdir())
    write_lines(path, ["old"], private=True)
    assert [file.stat().st_mode & 0o777 for file in (path, *path.iterdir())] == [0o700, 0o600]
    with pytest.raises(UnicodeEncodeError):
        write_lines(path, ["new", "\ud800"], private=True)
    assert list(read_lines(path)) == ["old"]
    (tmp_path / "link.parquet").symlink_to(path)
    write_lines(tmp_path / "link.parquet", ["new"])
    assert list(read_lines(path)) == ["new"]
    assert sorted(tmp_path.iterdir()) == [tmp_path / "link.parquet", path]


def test_what_would_be_lost_is_no_output(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_table(Path("mail.parquet/a.parquet"), text=[SECRET])
    Path("other.parquet").mkdir()
    Path("other.parquet/notes.txt").touch()
    for output, says in (("other", "it holds 'notes.txt', which is no Parquet file and would be lost"),
                         ("mail", "which is read; its content would be lost")):  # fmt: skip
        files = ["--input", "mail.parquet", "--output", f"{output}.parquet"]
        assert says in refusal("mask", "--technique", "allow_list", *files)
    assert list(read_lines("mail.parquet")) == [SECRET]
    assert Path("other.parquet/notes.txt").exists()


def _incomplete(path):
    for number in (0, 2):
        write_table(path / f"lines-0000{number}-of-00003.parquet", text=[SECRET])


BAD_BYTES = pyarrow.Array.from_buffers(
    pyarrow.string(), 1, [None, pyarrow.py_buffer(b"\0\0\0\0\2\0\0\0"), pyarrow.py_buffer(b"a\xff")]
)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path.mkdir(), "folder 'x.parquet' holds no file that ends in .parquet"),
        (_incomplete, "folder 'x.parquet' holds 2 of the 3 files lines-*-of-00003.parquet; copy it whole"),
        (lambda path: path.write_bytes(b"PAR1" + SECRET.encode()), "'x.parquet' is not a readable Parquet file"),
        (lambda path: write_table(path, body=[SECRET]), "'x.parquet' has no column 'text'; there are: body"),
        (lambda path: write_table(path / "b.parquet", text=["", SECRET, None]), "row 3 is null in 'text'"),
        (lambda path: write_table(path, text=["a"] * 5000 + [f"{SECRET}\nb"]), "row 5001 has a line end in 'text'"),
        (lambda path: write_table(path, text=BAD_BYTES), "x.parquet: line 1: byte 2 (0xff) is not UTF-8"),
    ],
)
def test_what_is_no_text_is_refused_in_one_line(tmp_path, monkeypatch, make, message):
    monkeypatch.chdir(tmp_path)
    make(Path("x.parquet"))
    with pytest.raises(CorpusError) as caught:
        list(read_lines("x.parquet"))
    assert message in str(caught.value)
    assert SECRET not in str(caught.value)


def test_a_command_reads_and_writes_parquet_as_plain_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for ending in ("txt", "parquet"):
        write_lines(f"mail.{ending}", ["Anna told me that the bus was late.", "", "Zoltan too"])
        files = ["--input", f"mail.{ending}", "--output", f"masked.{ending}", "--sidecar", f"spans.{ending}"]
        document = report("mask", "--technique", "allow_list", *files)
    for name in ("masked", "spans"):
        assert list(read_lines(f"{name}.parquet")) == list(read_lines(f"{name}.txt"))
    assert document["inputs"]["mail.parquet"] == content_hash("mail.parquet")


@pytest.mark.parametrize("kind", [pyarrow.large_string(), pyarrow.dictionary(pyarrow.int32(), pyarrow.string())])
def test_a_small_file_whose_dictionary_holds_a_long_text_is_refused_before_it_comes_out(tmp_path, monkeypatch, kind):
    """Also in a later group of rows, after short ones."""
    monkeypatch.setattr(parquet_lines, "LONGEST_LINE", 1 << 17)
    rows = pyarrow.array(["short"] * 2000 + ["x" * 10_000] * 2000, pyarrow.string()).cast(kind)
    pyarrow.parquet.write_table(pyarrow.table({"text": rows}), tmp_path / "bomb.parquet", row_group_size=1000)
    del rows
    tracemalloc.start()
    with pytest.raises(CorpusError, match="more than 200 times its size"):
        list(read_lines(tmp_path / "bomb.parquet"))
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()
    assert pyarrow.total_allocated_bytes() < 10_000_000
