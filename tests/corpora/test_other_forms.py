"""Files of strangers: tables in any dialect and encoding are read, and what is no text is refused by what it is."""

import codecs
import gzip
import io
import json
import zipfile

import pytest

from tasks.cli import main
from tasks.corpora.other_forms import refuse_form
from tasks.corpora.sources.detection import detected, texts_of
from tasks.corpora.text_lines import read_lines
from tasks.errors import CorpusError

SENTENCE = "They saw Mirela, at noon"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", f'id,message\n1,"{SENTENCE}"\n'),
        ("a.csv", f"id;body\r\n1;{SENTENCE}\r\n"),
        ("a.csv", f"id\tutterance\n1\t{SENTENCE}\n"),
        ("a.CSV", f'content\n"{SENTENCE}"\n'),
        ("a.tsv", f"id\tmessage\n1\t{SENTENCE}\n"),
        ("a.tsv", f'id\ttext\n1\t"{SENTENCE}"\n2\t"two\nlines and ""marks"""\n'),
        ("a.JSONL", json.dumps({"message": SENTENCE}) + "\n"),
        ("a.Ndjson", json.dumps({"id": 1, "sentence": SENTENCE}) + "\n"),
        ("a.txt", SENTENCE + "\n"),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_the_column_of_a_table_is_found(tmp_path, name, content, encoding):
    (tmp_path / name).write_bytes(content.encode(encoding))
    assert next(texts_of(detected(tmp_path / name).open())) == SENTENCE


def test_a_quotation_mark_of_a_plain_tsv_is_one(tmp_path):
    lines = ['"Hello" she said', '"', 'she said "no"', '"whole"']
    (tmp_path / "a.tsv").write_text("id\ttext\n" + "".join(f"{n}\t{line}\n" for n, line in enumerate(lines)) + "\n")
    assert list(texts_of(detected(tmp_path / "a.tsv").open())) == lines


def test_columns_are_named_and_a_table_without_header_is_not_quoted(tmp_path):
    (tmp_path / "a.csv").write_text("1,Ottilie Kowalczyk called\n2,nothing\n")
    with pytest.raises(CorpusError, match=r"has 2 columns, and none is called text, .* with --text-field") as caught:
        detected(tmp_path / "a.csv")
    assert "Ottilie" not in str(caught.value)
    (tmp_path / "b.csv").write_text("case,note\n7,one\n7,two\n")
    found = detected(tmp_path / "b.csv", "note", "case")
    assert (found.text_field, found.document_field) == ("note", "case")
    with pytest.raises(CorpusError, match=r"--text-field: .* has no field 'notes' \(did you mean 'note'\?\)"):
        detected(tmp_path / "b.csv", "notes")
    (tmp_path / "c.txt").write_text("one\n")
    with pytest.raises(CorpusError, match="has no fields; leave --text-field out"):
        detected(tmp_path / "c.txt", "note")
    (tmp_path / "d.jsonl").write_text('{"messages": [{"role": "user", "content": "secret"}]}\n')
    with pytest.raises(CorpusError, match="What lies in lists needs records of its own"):
        detected(tmp_path / "d.jsonl")


def zipped(*names):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name in names:
            archive.writestr(name, "x")
    return content.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (zipped("[Content_Types].xml", "xl/workbook.xml"), "an Excel workbook .*: save it as CSV UTF-8"),
        (zipped("word/document.xml"), "a Word document"),
        (zipped("mimetype", "content.xml"), "an OpenDocument file"),
        (zipped("a.txt"), "a zip archive .*: unpack it"),
        (b"PK\x03\x04cut off", "a zip archive"),
        (b"%PDF-1.7\n", "a PDF document"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a document of an older Office"),
        (gzip.compress(b"text", mtime=0), "compressed with gzip"),
        (b"RIFF\x24\x00\x00\x00WAVE", "a sound recording"),
    ],
)
@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.jsonl", "a"])
def test_a_binary_file_is_refused_by_its_first_bytes(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CorpusError, match=message) as caught:
        detected(tmp_path / name)
    assert "iconv" not in str(caught.value)


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "iso8859-15", "cp1250"])
def test_another_encoding_is_refused_with_a_command_that_names_it(tmp_path, encoding):
    (tmp_path / "a.txt").write_bytes("caf\u00e9\n".encode(encoding))
    with pytest.raises(
        CorpusError, match=r"not UTF-8; convert the file, .* 'iconv -f WINDOWS-1252 -t UTF-8 FILE > NEW'"
    ):
        detected(tmp_path / "a.txt")


def test_utf_16_that_breaks_off_is_named_by_its_line(tmp_path):
    (tmp_path / "a.txt").write_bytes(codecs.BOM_UTF16_LE + "one\ntwo\n".encode("utf-16-le") + b"\x00\xd8a\x00b")
    with pytest.raises(CorpusError, match=r"begins as UTF-16, and changes after line [0-2]"):
        list(read_lines(tmp_path / "a.txt"))


FORMS = [
    ("a.txt", "WEBVTT\n\n00:00.000 --> 00:03.000\nsecret\n", "subtitles"),
    ("a.vtt", "secret\n", "subtitles"),
    ("a.srt", "1\n00:00:00,000 --> 00:00:03,000\nsecret\n", "subtitles"),
    ("a.text", "\n1\n00:00:00,000 --> 00:00:03,000\nsecret\n", "subtitles"),
    ("a.txt", "12/03/2026, 09:14 - Ilse: secret\n", "an exported chat"),
    ("a.txt", "[28.03.26, 14:39:07] Ilse: secret\n", "an exported chat"),
    ("a.txt", "secret\n3/12/26, 9:14\u202fAM - A: secret\n3/12/26, 9:15\u202fAM - B: secret\n", "an exported chat"),
    ("a.json", '[{"text": "secret"}]', "JSON"),
    ("a.txt", '[\n  {"user": "U1", "ts": "1.2", "text": "secret"}\n]\n', "JSON"),
    ("a", '{"messages": [{"text": "secret"}]}\n', "JSON"),
    ("a.txt", '["secret", "secret"]\n', "JSON"),
    ("a.html", "secret\n", "HTML or XML"),
    ("a.txt", "<!DOCTYPE html><p>secret</p>\n", "HTML or XML"),
]


@pytest.mark.parametrize(("name", "content", "what"), FORMS)
def test_other_forms_are_never_taken_for_sentences(tmp_path, name, content, what):
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(CorpusError, match=f"is {what} and no plain text: ") as caught:
        list(texts_of(detected(tmp_path / name).open()))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "line",
    ["[1] Smith et al.", "[1]", "[[MASK] said", "{a}", "12/03/2026 was a day", "at 09:14 - yes", "<3 you", "1", "[]"],
)
def test_sentences_that_resemble_them_are_read(line):
    refuse_form("a.txt", [line, "and so on"])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", '{"text": "secret"}\n'),
        ("a.CSV", "id,text\n1,secret\n"),
        ("a.eml", "From: a@example.org\n\nsecret\n"),
        ("a.txt", '{"text": "secret"}\n'),
        ("a.srt", "1\n00:00:00,000 --> 00:00:03,000\nsecret\n"),
    ],
)
@pytest.mark.parametrize(
    "command",
    [["mask", "--technique", "allow_list", "--output"], ["count-words", "--output"]],
    ids=lambda words: words[0],
)
def test_a_stage_that_reads_a_sentence_a_line_refuses_them(tmp_path, capsys, name, content, command):
    (tmp_path / name).write_text(content)
    assert main([*command, str(tmp_path / "out.txt"), "--input", str(tmp_path / name)]) == 1
    said = capsys.readouterr().err
    assert "is JSON" in said or "is a table" in said or "is mail" in said or "is subtitles" in said
    assert "secret" not in said
    assert not (tmp_path / "out.txt").exists()
