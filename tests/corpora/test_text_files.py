import json

import pyarrow
import pyarrow.parquet
import pytest

from tasks.corpora.sources.document import Document
from tasks.corpora.sources.text_files import FilesCorpus
from tasks.errors import CorpusError


def documents(source, **options):
    source = FilesCorpus(kind="files", source=str(source), **options).open()
    return [document for part in source.parts for document in source.documents(part)]


def test_json_lines_with_documents(tmp_path):
    rows = [{"body": "one", "thread": 1}, {"body": "two", "thread": 1}, {"body": "three", "thread": 2}]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    found = documents(tmp_path / "a.jsonl", text_field="body", document_field="thread")
    assert found == [Document(["one", "two"], None, 1), Document(["three"], None, 2)]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", '{"text": "one, \\"1\\"", "mood": 1}\n{"text": "two", "mood": -1}\n'),
        ("a.csv", '\ufefftext,mood\r\n"one, ""1""",1\r\ntwo,-1\r\n'),
        ("a.tsv", 'mood\ttext\n1\tone, "1"\n-1\ttwo\n'),
    ],
)
def test_labels_of_records(tmp_path, name, content):
    (tmp_path / name).write_text(content, encoding="utf-8")
    found = documents(tmp_path / name, label_field="mood")
    assert found == [Document(['one, "1"'], label="1"), Document(["two"], label="-1")]


def test_folder_with_parts(tmp_path):
    for name in ("train.txt", "test.txt", "more.txt", "notes.bin", ".hidden.txt"):
        (tmp_path / name).write_text(name)
    found = {document.texts[0]: document.part for document in documents(tmp_path)}
    assert found == {"train.txt": "train", "test.txt": "test", "more.txt": None}


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("a.txt", b"ok\n\xff\xfe\n", {}, "line 2: byte 1 .0xff. is not UTF-8"),
        ("a.jsonl", b'{"text": "a"}\n{"text"\n', {}, "line 2 is not JSON .column 8."),
        ("a.jsonl", b'{"text": "a"}\n{"body": "secret"}\n', {}, "line 2 has no text field 'text'"),
        ("a.jsonl", b'{"text": 5}\n', {}, "line 1 has no text field 'text'"),
        ("a.jsonl", b'{"text": "a"}\n', {"document_field": "id"}, "line 1 has no field 'id'"),
        ("a.txt", b"a\n", {"document_field": "id"}, "plain text and has no field 'id'"),
        ("a.txt", b"a\n", {"label_field": "mood"}, "plain text and has no field 'mood'"),
        ("a.csv", b"text,mood\na,b\nc\n", {"label_field": "mood"}, "line 3 has no field 'mood'"),
        ("a.tsv", b"tweet\tmood\na\tb\n", {}, "line 2 has no text field 'text'"),
    ],
)
def test_bad_files(tmp_path, name, content, options, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CorpusError, match=message) as caught:
        documents(tmp_path / name, **options)
    assert "secret" not in str(caught.value)


def test_bad_places(tmp_path):
    table = pyarrow.table({"text": ["one", None], "n": [1, 2]})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    (tmp_path / "empty").mkdir()
    for name, options, message in (
        ("nothing", {}, "does not exist"),
        ("empty", {}, "holds no file that ends in"),
        ("a.parquet", {"text_field": "body"}, "no column 'body'; there are: text, n"),
        ("a.parquet", {}, "row 2: column 'text' holds no text"),
    ):
        with pytest.raises(CorpusError, match=message):
            documents(tmp_path / name, **options)


def test_given_parts_must_be_there_and_nothing_else(tmp_path):
    for name in ("train.txt", "test.txt"):
        (tmp_path / name).write_text(name)
    with pytest.raises(CorpusError, match=r"has no file named valid\.\*"):
        documents(tmp_path, parts="given")
    with pytest.raises(CorpusError, match=r"train\.\* or valid\.\* or test\.\*"):
        documents(tmp_path / "train.txt", parts="given")
    (tmp_path / "valid.txt").write_text("valid.txt")
    found = {document.texts[0]: document.part for document in documents(tmp_path, parts="given")}
    assert found == {"train.txt": "train", "valid.txt": "valid", "test.txt": "test"}
    (tmp_path / "more.txt").write_text("more.txt")
    with pytest.raises(CorpusError, match=r"holds 'more\.txt'"):
        documents(tmp_path, parts="given")


def test_a_file_can_be_one_document_and_a_line_several_sentences(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text(f"{name} one\n{name} two\n")
    assert [found.texts for found in documents(tmp_path, documents="files")] == [["a one", "a two"], ["b one", "b two"]]
    (tmp_path / "a.txt").write_text("It rains. Mr. Li left.\n")
    assert [found.texts for found in documents(tmp_path / "a.txt", split=True)] == [["It rains.", "Mr. Li left."]]
