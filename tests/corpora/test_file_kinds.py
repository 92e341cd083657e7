"""Text as people have it: each kind of file is known by its content, and read as a person reads it.

Expected documents, texts and counts are written by hand.
"""

import io
import json
import sqlite3
import tarfile
import zipfile

import docx
import openpyxl
import pyarrow
import pyarrow.parquet
import pytest
from command_results import refusal
from pypdf import PdfWriter
from pypdf.generic import ContentStream, DecodedStreamObject, NameObject, read_object

from tasks.corpora.forms import form_of
from tasks.corpora.own_text import OwnTextOptions
from tasks.corpora.sources import archives
from tasks.corpora.sources.detection import detected, texts_of
from tasks.errors import CorpusError


def packed(files, kind="zip"):
    """An archive of files by name."""
    stream = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        return stream.getvalue()
    with tarfile.open(fileobj=stream, mode=kind) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def workbook(*sheets):
    book, stream = openpyxl.Workbook(), io.BytesIO()
    book.remove(book.active)
    for rows in sheets:
        sheet = book.create_sheet()
        for row in rows:
            sheet.append(row)
    book.save(stream)
    return stream.getvalue()


def word():
    document, stream = docx.Document(), io.BytesIO()
    document.add_heading("Visit", 1)
    document.add_paragraph("Mirela came at noon. She left at two.")
    cells = document.add_table(1, 2).rows[0].cells
    cells[0].text, cells[1].text = "Ward", "Seven"
    document.add_paragraph("Call Bo.")
    document.save(stream)
    return stream.getvalue()


FONTS = b"<< /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >>"


def pdf(*pages, password=None):
    """A PDF with lines of text on each page; an empty one is a scan."""
    writer, stream = PdfWriter(), io.BytesIO()
    for lines in pages:
        page, content = writer.add_blank_page(595, 842), DecodedStreamObject()
        page[NameObject("/Resources")] = read_object(io.BytesIO(FONTS), writer)
        shown = " T* ".join(f"({line}) Tj" for line in lines)
        content.set_data(f"BT /F1 12 Tf 14 TL 50 700 Td {shown} ET".encode())
        page.replace_contents(ContentStream(content, writer))
    if password is not None:
        writer.encrypt(password)
    writer.write(stream)
    return stream.getvalue()


def arrow(**columns):
    table, stream = pyarrow.table(columns), io.BytesIO()
    with pyarrow.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    return stream.getvalue()


def parquet(**columns):
    stream = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), stream)
    return stream.getvalue()


def mail(number, body, *headers):
    head = [f"From: p{number}@example.org", f"Message-ID: <{number}@x>", "Subject: hidden", *headers]
    return "\n".join([*head, "", body, ""])


PICTURE = {"type": "image_url", "image_url": {}}
CHAT = {
    "messages": [
        {"role": "system", "content": "Be kind."}, {"role": "user", "content": "I am Mirela."},
        {"role": "assistant", "content": None, "tool_calls": [{}]},
        {"role": "user", "content": [{"type": "text", "text": "See this."}, PICTURE]},
    ]
}  # fmt: skip
TURNS = ["I am Mirela.", "See this."]
VTT = (
    "WEBVTT\n\nNOTE made by hand\n\n1\n00:00:00.000 --> 00:00:03.000 align:start\n<v Mirela Popa>Good day,\n"
    "<i>Bo</i> &amp; all.</v>\n\n00:04.000 --> 00:05.000\n<v Bo>Hello.</v>\n\n00:06.000 --> 00:07.000\n"
    "<v Mirela Popa>[music]</v>\n"
)
SRT = (
    "1\n00:00:00,000 --> 00:00:03,000\nMirela: Good day.\n\n2\n00:00:04,000 --> 00:00:05,000\n"
    "- Note: this stays.\n\n3\n00:00:06,000 --> 00:00:07,000\nMirela: Is Bo there?\n"
)
ANDROID = """12/03/2026, 09:14 - Messages and calls are end-to-end encrypted.
12/03/2026, 09:15 - Mirela Popa: Good day
at ten
12/03/2026, 09:16 - +32 471 22 33 44: <Media omitted>
12/03/2026, 09:17 - Bo: IMG-2026.jpg (file attached)
At the beach
12/03/2026, 09:18 - Bo: Hello: yes <This message was edited>
12/03/2026, 09:19 - Mirela Popa: This message was deleted
12/03/2026, 09:20 - Bo added Ada
12/03/2026, 09:21 - Mirela Popa: Bye
"""
IOS = (
    "[28.03.26, 14:39:07] Team: \u200eMessages and calls are end-to-end encrypted.\r\n"
    "[28.03.26, 14:39:08] Mirela: Good day\r\n\u200e[28.03.26, 14:39:09] Bo: \u200eimage omitted\r\n"
    "[28.03.26, 14:40:00] Bo: Hello\r\n"
)
SLACK = [
    {"type": "message", "user": "U1", "ts": "1", "thread_ts": "1", "text": "Ask <@U2> &amp; see <https://x.org|it>"},
    {"type": "message", "user": "U2", "ts": "2", "text": "Alone"},
    {"type": "message", "user": "U2", "ts": "3", "thread_ts": "1", "text": "I will"},
    {"type": "message", "subtype": "channel_join", "user": "U3", "ts": "4", "text": "<@U3> has joined"},
    {"type": "message", "user": "U1", "ts": "5", "text": "", "files": [{}]},
]
DISCORD = {"guild": {"name": "g"}, "channel": {"name": "c"}, "messages": [
    {"type": "Default", "content": "Good day", "author": {"id": "1", "name": "Mirela"}},
    {"type": "GuildMemberJoin", "content": "Joined.", "author": {"id": "2"}},
    {"type": "Reply", "content": "Hello", "author": {"id": "2"}},
    {"type": "Default", "content": "", "attachments": [{}], "author": {"id": "1"}},
    {"type": "Default", "content": "Bye", "author": {"id": "1"}},
]}  # fmt: skip
TELEGRAM_MESSAGES = [
    {"type": "service", "action": "phone_call", "text": ""},
    {"type": "message", "from": "Mirela", "from_id": "u1", "text": ["Write to ", {"type": "email", "text": "a@x.org"}]},
    {"type": "message", "from": "Bo", "from_id": "u2", "text": "", "photo": "a.jpg"},
    {"type": "message", "from": "Bo", "from_id": "u2", "text": "Hello"},
]
TELEGRAM = {"name": "Mirela", "type": "personal_chat", "messages": TELEGRAM_MESSAGES}
MARKDOWN = (
    "---\nauthor: hidden\n---\n# Visit of *Mirela*\n\nShe came **at [noon](https://x.org)**\n"
    "and left. Then `Bo` came.\n\n- one\n- two\n\n| a | b |\n|---|---|\n| c | d |\n\n```python\nhidden = 1\n"
    "```\n\n<div>hidden</div>\n"
)
HTML = "<!DOCTYPE html><html><title>hidden</title><p>Mirela came.<br>She left. Bo stayed.<script>x</script></p></html>"
OUTLOOK = (
    "See you. Mirela\n\n________________________________\nFrom: Bo <b@x.org>\nSent: Monday, 2 March 2026\n"
    "To: Mirela\nSubject: hidden\n\nHidden text.\n"
)
REPLY = "Yes, at ten.\n\nOn Mon, 2 Mar 2026 at 10:00, Bo Berg\n<b@x.org> wrote:\n\n> hidden\n"
MBOX = "".join(
    f"From p@x.org Mon Mar  2 10:00:00 2026\n{one}\n"
    for one in (
        mail(1, "Shall we meet?"),
        mail(2, "Another matter."),
        mail(3, REPLY, "In-Reply-To: <1@x>"),
        mail(4, OUTLOOK, "References: <1@x> <3@x>"),
    )
)
TICKETS = {"tickets": [{"id": 1, "body": "One."}, {"id": 2, "body": "Two."}]}
STUDIO = [{"id": 7, "data": {"text": "One."}, "annotations": [{"result": [{"value": {"text": ["O"]}}]}]}]
JSONL = '{"message": "One."}\n{"message": "Two."}\n'
ONE_TWO = [["One."], ["Two."]]

# name, content, documents (texts of one name together), left out
KINDS = [
    ("a.txt", b"\xef\xbb\xbfOne.\r\nTwo.\n\nThree.", [["One."], ["Two."], [""], ["Three."]], {}),
    ("a.CSV", "id\tutterance\n1\tOne, or two.\n".encode("utf-16"), [["One, or two."]], {}),
    ("a.tsv", '\ufeffid\ttext\n1\t"One."\n2\t"two\nlines and ""marks"""\n', [["One."], ['two\nlines and "marks"']], {}),
    ("a.Ndjson", f'{{"id": {"[" * 400}1{"]" * 400}, "sentence": "One."}}\n\n', [["One."]], {}),
    ("a.csv", "id|body\n1|One.\n2|Two.\n", ONE_TWO, {}),
    ("a", 'Id;Message\n1;"One\nmore"\n2;=2+3\n', [["One\nmore"], ["=2+3"]], {}),
    ("a.json", json.dumps(TICKETS), ONE_TWO, {}),
    ("a.json", json.dumps(STUDIO, indent=1), [["One."]], {}),
    ("a.jsonl", f"{json.dumps(CHAT)}\n" * 2, [TURNS] * 2, {"system": 2, "no_text": 2, "media": 2}),
    ("a.jsonl", '{"conversations": [{"from": "human", "value": "One."}, {"from": "gpt", "value": "Two."}]}\n',
        [["One.", "Two."]], {}),
    ("a.xlsx", workbook([["Id", "Body"], [1, "One."], [None, None], [2, 7], [3, "=1+1"]], [["x"], ["hidden"]]),
        [["One."], ["7"], [""]], {"sheets_without_the_text": 1}),
    ("a.csv", workbook([["text"], ["One."]]), [["One."]], {}),
    ("a.arrow", arrow(messages=[[{"content": "One."}, {"content": "Two."}]]), [["One.", "Two."]], {}),
    ("a.parquet", parquet(messages=[[{"role": "system", "content": "x"}, {"role": "user", "content": "One."}]]),
        [["One."]], {"system": 1}),
    ("a.vtt", VTT, [["Good day, Bo & all."], ["Hello."]], {"comments": 1, "sounds": 1}),
    ("a.txt", SRT, [["Good day.", "Is Bo there?"], ["Note: this stays."]], {}),
    ("a.txt", ANDROID, [["Good day\nat ten", "Bye"], ["At the beach", "Hello: yes"]], {"system": 3, "media": 2}),
    ("a.txt", IOS, [["Good day"], ["Hello"]], {"system": 1, "media": 1}),
    ("s/general/2026-03-01.json", json.dumps(SLACK), [["Ask @U2 & see it", "I will"], ["Alone"]],
        {"system": 1, "media": 1}),
    ("a.json", json.dumps(DISCORD), [["Good day", "Bye"], ["Hello"]], {"system": 1, "media": 1}),
    ("result.json", json.dumps({"chats": {"list": [TELEGRAM]}}), [["Write to a@x.org"], ["Hello"]],
        {"system": 1, "media": 1}),
    ("a.md", MARKDOWN, [["Visit of Mirela", "She came at noon and left.", "Then Bo came.", "one", "two", *"abcd"]],
        {"markup": 2, "code": 1}),
    ("a", HTML, [["Mirela came.", "She left.", "Bo stayed."]], {}),
    ("a.docx", word(), [["Visit", "Mirela came at noon.", "She left at two.", "Ward", "Seven", "Call Bo."]], {}),
    ("a.pdf", pdf(["Mirela came at", "noon. She was exam-", "ined."], []),
        [["Mirela came at noon.", "She was examined."]], {"pages": 1}),
    ("Inbox", MBOX, [["Shall we meet?", "Yes, at ten.", "See you.", "Mirela"], ["Another matter."]], {"quoted": 12}),
    ("a.zip", packed({"b/x.eml": mail(1, "One."), "c.csv": "text\nTwo.\n", "d.zip": packed({}), ".e.txt": "x"}),
        ONE_TWO, {}),
    ("a.tar", packed({"b.txt": b"One.\nTwo.\n"}, "w"), ONE_TWO, {}),
    ("a.tgz", packed({"b.jsonl": JSONL.encode()}, "w:gz"), ONE_TWO, {}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "expected", "left_out"), KINDS, ids=[row[0] for row in KINDS])
def test_a_file_is_read_by_its_content(tmp_path, name, content, expected, left_out):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    settings = detected(path).model_copy(update={"documents": "auto", "split": False})
    source, together, counted = settings.open(), {}, {}
    for document in (one for part in source.parts for one in source.documents(part)):
        key = document.name if document.name is not None else len(together)
        together.setdefault(key, []).extend(document.texts)
        for reason, count in document.left_out.items():
            counted[reason] = counted.get(reason, 0) + count
    assert [texts for texts in together.values() if texts] == expected
    assert counted == left_out
    assert source.files == [str(path)]


def test_a_field_is_named_in_any_depth_with_its_nearest_spelling(tmp_path):
    rows = [{"case": {"id": n // 2}, "log": {"entry": [{"said": f"{n}a"}, {"said": f"{n}b"}]}} for n in range(4)]
    (tmp_path / "a.json").write_text(json.dumps(rows))
    source = detected(tmp_path / "a.json", "log.entry.said", "case.id").open()
    assert [one.texts for one in source.documents()] == [["0a", "0b", "1a", "1b"], ["2a", "2b", "3a", "3b"]]
    with pytest.raises(CorpusError, match=r"--text-field: .* has no field 'log.said' \(did you mean 'log.entry.said'"):
        detected(tmp_path / "a.json", "log.said")


@pytest.mark.parametrize(
    ("encoding", "named"),
    [("utf-8-sig", False), ("utf-16", False), ("cp1252", False), ("cp1251", False), ("utf-16-le", True)],
)
def test_an_encoding_is_known_guessed_or_named(tmp_path, encoding, named):
    text = "Привет, меня зовут Мирела." if encoding == "cp1251" else "Café Müller: “Straße” à gauche, señor."
    (tmp_path / "a.csv").write_text("id,text\n" + f'1,"{text}"\n' * 3, encoding=encoding)
    documents = list(detected(tmp_path / "a.csv", encoding=encoding if named else None).open().documents())
    assert [one for document in documents for one in document.texts] == [text] * 3
    expected = [f"files are read as {encoding.upper()}, guessed from their bytes (--encoding sets another)"]
    assert [what for document in documents for what in document.guessed] == expected * encoding.startswith("cp")


def test_a_query_is_read_and_changes_nothing(tmp_path):
    path = tmp_path / "a.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE mail (id INTEGER, body TEXT)")
        database.executemany("INSERT INTO mail VALUES (?, ?)", [(1, "One."), (2, "Two.")])
    with OwnTextOptions(query="SELECT body AS text FROM mail ORDER BY id").reader_of(f"sqlite:///{path}") as reader:
        assert list(texts_of(reader.open())) == ["One.", "Two."]
    for url, query, message in [
        (f"sqlite:///{path}", "DELETE FROM mail", "refuses URL or query"),
        (f"sqlite:///{path}", "SELECT secret FROM mail", r"refuses URL or query \(OperationalError\)"),
        (f"sqlite:///{path}", None, "a database needs --query"),
        ("nosql://user:secret@host/x", "SELECT 1", "of no known database"),
        (str(path), None, "a database of SQLite .*: give it as sqlite:///FILE"),
    ]:
        with pytest.raises(CorpusError, match=message) as caught, OwnTextOptions(query=query).reader_of(url):
            pass
        assert "secret" not in str(caught.value)
    with sqlite3.connect(path) as database:
        assert database.execute("SELECT COUNT(*) FROM mail").fetchone() == (2,)


def test_folders_of_other_programs_are_read_as_wholes(tmp_path):
    for name, content in {
        "s/users.json": json.dumps([{"id": "U1", "profile": {"text": "hidden"}}]).encode(),
        "s/channels.json": json.dumps([{"id": "C1"}]).encode(),
        "s/general/2026-03-01.json": json.dumps(SLACK).encode(),
        "h/dataset_info.json": json.dumps({"text": "hidden"}).encode(),
        **{f"h/{part}/data-00000-of-00001.arrow": arrow(note=[part]) for part in ("train", "validation", "test")},
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    assert sorted(texts_of(detected(tmp_path / "s").open())) == ["Alone", "Ask @U2 & see it", "I will"]
    source = detected(tmp_path / "h", "note").open()
    found = {document.part: document.texts for part in source.parts for document in source.documents(part)}
    assert found == {"train": ["train"], "valid": ["validation"], "test": ["test"]}


OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
with zipfile.ZipFile(io.BytesIO(workbook([["text"], ["secret"]]))) as whole:
    CUT = packed({name: whole.read(name)[: -60 if "sheet1" in name else None] for name in whole.namelist()})
REFUSED = {
    "OpenDocument": ("a.txt", packed({"mimetype": "x", "content.xml": "x"}), "OpenDocument file .*: save it as .xlsx"),
    "a path outside": ("a.zip", packed({"../secret.txt": "x"}), "a file whose place is outside of it"),
    "a path outside a tar": ("a.tar", packed({"b/../../secret.txt": b"x"}, "w"), "a file whose place is outside of it"),
    "a zip bomb": ("a.zip", packed({"a.txt": bytes(2 << 20)}), "unpacks to more than 200 times its size"),
    "a damaged workbook": ("a.xlsx", packed({"[Content_Types].xml": "x", "xl/workbook.xml": "<secret"}),
        r"is damaged \(\w+\); save it again"),
    "a cut sheet": ("a.xlsx", CUT, r"is damaged \(\w+\); save it again"),
    "a locked workbook": ("a.xlsx", OLD_OFFICE + bytes(99) + "EncryptedPackage".encode("utf-16-le"),
        "protected by a password"),
    "a locked PDF": ("a.pdf", pdf(["x"], password="secret"), "protected by a password"),
    "a scan": ("a.pdf", pdf([], []), "has no text, only pictures of it"),
    "a damaged PDF": ("a.pdf", b"%PDF-1.7\nsecret", "is damaged"),
    "a picture": ("a.txt", b"\x89PNG\r\n", "a picture and cannot be read: give the text in it"),
    "bytes": ("a.txt", b"secret \x80\x00\x81\n", "is no text: it has bytes of another kind"),
    "deep JSON": ("a.json", "[" * 100_000, "is not JSON"),
    "XML": ("a.xml", "<?xml version='1.0'?><secret/>", "is XML and cannot be read"),
    "two encodings": ("a.txt", b"\xc3\xa4\nsecret \xe4\n", r"line 2: byte 8 .* 'iconv -f WINDOWS-1252 -t UTF-8"),
    "UTF-16 without a mark": ("a.txt", "id,text\n1,secret\n".encode("utf-16-le"), "cannot be read: name it"),
    "columns without a name": ("a.csv", "1,secret\n2,nothing\n", "has 2 columns, and none is called text"),
    "fields without a name": ("a.json", '[{"a": {"text": "x"}, "b": {"text": "y"}}]', "has the fields a.text, b.text"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_read_is_refused_in_a_sentence_without_its_text(tmp_path, monkeypatch, case):
    monkeypatch.setattr(archives, "LONGEST_LINE", 1 << 20)
    name, content, message = REFUSED[case]
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(CorpusError, match=message) as caught:
        list(detected(tmp_path / name).open().documents())
    assert "secret" not in str(caught.value).replace(str(tmp_path), "")
    assert "\n" not in str(caught.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == [name]


@pytest.mark.parametrize(
    "line",
    [
        "[1] Smith et al.", "[[MASK] said", "{a}", "12/03/2026 was a day", "<3 you", "[]", "Dear Bo, text and body",
        "From: the beginning", "# one", "id;text",
    ],
)  # fmt: skip
def test_sentences_that_resemble_other_forms_are_read(tmp_path, line):
    (tmp_path / "a.txt").write_text(f"{line}\nand so on\n")
    assert form_of(tmp_path / "a.txt") == "text"


def test_a_stage_that_reads_a_sentence_a_line_refuses_other_forms(tmp_path):
    for name, content, form in (("a.jsonl", '{"text": "secret"}\n', "JSON lines"), ("a.srt", SRT, "subtitles")):
        (tmp_path / name).write_text(content)
        files = ["--input", tmp_path / name, "--output", tmp_path / "out.txt"]
        said = refusal("mask", "--technique", "allow_list", *files)
        assert f"is {form}, and one sentence a line is read here. palimpsest.mask and 'palimpsest init' read" in said
        assert "secret" not in said
        assert not (tmp_path / "out.txt").exists()
