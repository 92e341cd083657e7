"""Files of text and records: documents, labels, parts; and copies that have other texts in the same places."""

import pyarrow
import pyarrow.parquet
import pytest

from tasks.corpora.sources.document import Document
from tasks.corpora.sources.given_file import GivenFile
from tasks.corpora.sources.text_files import FilesCorpus
from tasks.corpora.text_places import TextPlaces
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
        ("a.txt", "secret\n", {"parts": "given"}, r"train\.\* or valid\.\* or test\.\*"),
        ("a.csv", "text,mood\na,b\nsecret\n", {"label_field": "mood"}, "line 3 has no field 'mood'"),
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


CASES = [
    ("a.txt", None, "\ufeffAda met Bo.\r\n\r\n  Cy\u2028too\rend", "\ufeffADA MET BO.\r\n\r\n  CY\u2028TOO\rEND"),
    ("a.csv", "note",
        'id;note;who\r\n1;"Hi ""Bo""\nline two; end";x\r\n\r\n2;plain;"y"\r\n3;"";z',
        'id;note;who\r\n1;"HI ""BO""\nLINE TWO; END";x\r\n\r\n2;PLAIN;"y"\r\n3;"";z'),
    ("a.tsv", "b", 'a\tb\n1\tthe "end\n', 'a\tb\n1\tTHE "END\n'),
    ("a.jsonl", "turns.said",
        '{"id":1, "turns": [{"said":"caf\\u00e9 \\"x\\"", "by": "said"},{"by":"b","said" : "zwei"}]}\n\n'
        '{"id": 2,"turns":[],"said":"outer","n":[1.5e3,null]}\n',
        '{"id":1, "turns": [{"said":"CAF\\u00c9 \\"X\\"", "by": "said"},{"by":"b","said" : "ZWEI"}]}\n\n'
        '{"id": 2,"turns":[],"said":"outer","n":[1.5e3,null]}\n'),
    ("content.jsonl", "messages.content",
        '{"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]},{"role":"system","content":"be"}]}\n',
        '{"messages":[{"role":"user","content":[{"type":"text","text":"HI"}]},{"role":"system","content":"BE"}]}\n'),
    ("a.json", None, '{\n "v": 1,\n "rows": [{"text": "a é"}, {"text": "b"}]\n}',
        '{\n "v": 1,\n "rows": [{"text": "A É"}, {"text": "B"}]\n}'),
    ("a.vtt", None,
        "WEBVTT\n\nNOTE by Ada\n\n1\n00:01.000 --> 00:02.000 align:left\n<v Ada Lovelace>Hi <i>Bo</i> &amp; co\n\n"
        "00:03.000 --> 00:04.000\n<v Ada Lovelace>yes\nno\n",
        "WEBVTT\n\nNOTE BY ADA\n\n1\n00:01.000 --> 00:02.000 align:left\n<v Speaker 1>HI <i>BO</i> &amp; CO\n\n"
        "00:03.000 --> 00:04.000\n<v Speaker 1>YES\nNO\n"),
    ("a.srt", None,
        "1\n00:00:01,000 --> 00:00:02,000\nAda: hi\n\n2\n00:00:02,000 --> 00:00:03,000\nBo: oh\n\n"
        "3\n00:00:03,000 --> 00:00:04,000\nAda: bye\n",
        "1\n00:00:01,000 --> 00:00:02,000\nSpeaker 1: HI\n\n2\n00:00:02,000 --> 00:00:03,000\nBO: OH\n\n"
        "3\n00:00:03,000 --> 00:00:04,000\nSpeaker 1: BYE\n"),
]  # fmt: skip
FORMS = {"vtt": "subtitles", "srt": "subtitles", "txt": "text"}


def places_of(path, **options) -> TextPlaces:
    form = FORMS.get(path.suffix[1:], path.suffix[1:])
    return TextPlaces(GivenFile(path, path.name, form, **options))


@pytest.mark.parametrize(("name", "field", "before", "after"), CASES, ids=[case[0] for case in CASES])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le"])
def test_a_copy_has_other_texts_and_all_else_unchanged(tmp_path, name, field, before, after, encoding):
    path, copy = tmp_path / name, tmp_path / "copy"
    path.write_bytes(before.encode(encoding))
    places = places_of(path, encoding=encoding, text_field=field or "text")
    places.write(copy, str)
    unnamed = before.replace("<v Ada Lovelace>", "<v Speaker 1>").replace("Ada: ", "Speaker 1: ")
    assert copy.read_bytes().decode(encoding) == unnamed
    places.write(copy, str.upper)
    assert copy.read_bytes().decode(encoding) == after


def test_a_column_of_parquet_is_replaced(tmp_path):
    table = pyarrow.table({"id": [1, 2, 3], "text": ["a", None, "b"], "by": ["x", "y", "z"]})
    pyarrow.parquet.write_table(table.replace_schema_metadata({"origin": "x"}), tmp_path / "a.parquet")
    places = places_of(tmp_path / "a.parquet", document_field="by")
    assert [(one.text, one.document) for one in places.texts()] == [("a", "x"), ("b", "z")]
    places.write(tmp_path / "copy", str.upper)
    found = pyarrow.parquet.read_table(tmp_path / "copy")
    assert found.to_pydict() == {"id": [1, 2, 3], "text": ["A", None, "B"], "by": ["x", "y", "z"]}
    assert found.schema.metadata == {b"origin": b"x"}


@pytest.mark.parametrize(
    ("name", "content", "options", "says"),
    [
        ("a.pdf", "%PDF-", {}, "is a PDF document: its texts cannot be written back"),
        ("a.csv", 'id,text\n1,"open\n', {}, "has no other half"),
        ("a.json", '[{"text": "x"}]', {"document_field": "id"}, "Write it as JSON lines"),
    ],
)
def test_files_that_cannot_be_written_back_are_refused(tmp_path, name, content, options, says):
    (tmp_path / name).write_text(content)
    with pytest.raises(CorpusError, match=says):
        list(places_of(tmp_path / name, **options).texts())
