"""Files of text and records: documents, labels, parts, and where a document ends."""

import pyarrow
import pyarrow.parquet
import pytest

from tasks.corpora.sources.document import Document
from tasks.corpora.sources.text_files import FilesCorpus
from tasks.errors import CorpusError


def documents(source, **options):
    source = FilesCorpus(kind="files", source=str(source), **options).open()
    return [document for part in source.parts for document in source.documents(part)]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", '{"body": "one, \\"1\\"", "mood": 1, "thread": 7}\n{"body": "two", "mood": -1, "thread": 7}\n'),
        ("a.csv", '\ufeffbody,mood,thread\r\n"one, ""1""",1,7\r\ntwo,-1,7\r\n'),
        ("a.tsv", 'mood\tbody\tthread\n1\tone, "1"\t7\n-1\ttwo\t7\n'),
    ],
)
def test_labels_and_documents_of_records(tmp_path, name, content):
    (tmp_path / name).write_text(content, encoding="utf-8")
    found = documents(tmp_path / name, text_field="body", label_field="mood")
    assert found == [Document(['one, "1"'], label="1"), Document(["two"], label="-1")]
    (found,) = documents(tmp_path / name, text_field="body", document_field="thread")
    assert (found.texts, str(found.name)) == (['one, "1"', "two"], "7")


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("a.jsonl", '{"text": "a"}\n{"body": "secret"}\n', {}, "line 2 has no text field 'text'"),
        ("a.jsonl", '{"text": "secret"}\n', {"document_field": "id"}, "line 1 has no field 'id'"),
        ("a.txt", "secret\n", {"document_field": "id"}, "plain text and has no field 'id'"),
        ("a.txt", "secret\n", {"parts": "given"}, r"train\.\* or valid\.\* or test\.\*"),
        ("a.csv", "text,mood\na,b\nsecret\n", {"label_field": "mood"}, "line 3 has no field 'mood'"),
        ("a.tsv", "tweet\tmood\na\tb\n", {}, "line 2 has no text field 'text'"),
        ("a.parquet", {"text": ["secret", None]}, {}, "row 2: column 'text' holds no text"),
        ("a.parquet", {"text": ["secret"], "n": [1]}, {"text_field": "body"}, "no column 'body'; there are: text, n"),
    ],
)
def test_what_is_no_text_is_refused_without_a_word_of_it(tmp_path, name, content, options, message):
    if isinstance(content, dict):
        pyarrow.parquet.write_table(pyarrow.table(content), tmp_path / name)
    else:
        (tmp_path / name).write_text(content)
    with pytest.raises(CorpusError, match=message) as caught:
        documents(tmp_path / name, **options)
    assert "secret" not in str(caught.value)


def test_files_are_parts_by_their_names_and_must_all_be_there_where_parts_are_given(tmp_path):
    def found(**options):
        return {document.texts[0]: document.part for document in documents(tmp_path, **options)}

    with pytest.raises(CorpusError, match="holds no file that ends in"):
        found()
    with pytest.raises(CorpusError, match="does not exist"):
        documents(tmp_path / "nothing")
    for name in ("train.txt", "test.txt", "notes.bin", ".hidden.txt"):
        (tmp_path / name).write_text(name)
    assert found() == {"train.txt": "train", "test.txt": "test"}
    with pytest.raises(CorpusError, match=r"has no file named valid\.\*"):
        found(parts="given")
    (tmp_path / "valid.txt").write_text("valid.txt")
    assert found(parts="given") == {"train.txt": "train", "valid.txt": "valid", "test.txt": "test"}
    (tmp_path / "more.txt").write_text("more.txt")
    assert found()["more.txt"] is None
    with pytest.raises(CorpusError, match=r"holds 'more\.txt'"):
        found(parts="given")


def test_a_file_can_be_one_document_and_a_line_several_sentences(tmp_path):
    (tmp_path / "a.txt").write_text("a one\na two\n")
    (tmp_path / "b.txt").write_text("It rains. Mr. Li left.\n")
    assert [found.texts for found in documents(tmp_path, documents="files", split=True)] == [
        ["a one", "a two"], ["It rains.", "Mr. Li left."],
    ]  # fmt: skip
