"""Texts of files in their places: a copy has other texts and all other bytes unchanged."""

import pyarrow
import pyarrow.parquet
import pytest

from tasks.corpora.sources.given_file import GivenFile
from tasks.corpora.text_places import TextPlaces
from tasks.errors import CorpusError

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


def test_every_field_but_the_text_is_named(tmp_path):
    for name, content, fields in [
        ("a.csv", "id,text\n1,x\n", {"id"}),
        ("a.jsonl", '{"text": "a"}\n{"text": "b", "late": {"name": "c"}}\n', {"late.name"}),
        ("a.txt", "x\n", set()),
    ]:
        (tmp_path / name).write_text(content)
        assert places_of(tmp_path / name).other_fields() == fields


@pytest.mark.parametrize(
    ("name", "content", "options", "says"),
    [
        ("a.pdf", "%PDF-", {}, "is a PDF document: its texts cannot be written back"),
        ("a.csv", "id,text\n1\n", {}, "a row without the column 'text'"),
        ("a.csv", 'id,text\n1,"open\n', {}, "has no other half"),
        ("a.csv", "id,text\n1,x\n", {"text_field": "note"}, "no column 'note'"),
        ("a.json", '[{"text": "x"}]', {"document_field": "id"}, "Write it as JSON lines"),
        ("a.jsonl", '{"body": "x"}\n', {}, "no text field 'text'"),
        ("a.jsonl", '{"text": "x"}\n{"text"\n', {}, "line 2"),
    ],
)
def test_files_that_cannot_be_written_back_are_refused(tmp_path, name, content, options, says):
    (tmp_path / name).write_text(content)
    with pytest.raises(CorpusError, match=says):
        list(places_of(tmp_path / name, **options).texts())
