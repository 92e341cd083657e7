"""Mail as people store it: what is text is read, and what is left out is counted."""

from base64 import b64encode

import pytest
from command_results import report

from tasks.corpora.sources.mail import ATTACHED, NO_TEXT, QUOTED
from tasks.corpora.sources.text_files import FilesCorpus

MAIL = (
    b"From: Ada Kovac <ada@example.org>\nSubject: the secret of Ottilie\nMIME-Version: 1.0\n"
    b"Content-Type: multipart/alternative; boundary=x\n\n--x\nContent-Type: text/plain; charset=utf-8\n"
    b"Content-Transfer-Encoding: quoted-printable\n\nDear Bo, the caf=C3=A9 is\nclosed. Come at 8.\n\n"
    b"> when do we meet?\nSee you!\n--=20\nAda\n--x\nContent-Type: text/html\n\n<p>Dear Bo</p>\n--x--\n"
)
LINE = b"From ada@example.org Mon Nov 23 09:00:00 2026\n"


def read(path, content):
    path.write_bytes(content)
    return list(FilesCorpus(kind="files", source=str(path)).open().documents())


def message(content_type, body, *headers):
    head = [b"From: a@example.org", b"MIME-Version: 1.0", b"Content-Type: " + content_type, *headers]
    return b"\n".join([*head, b"", body, b""])


def mixed(*parts, kind=b"mixed"):
    body = b"".join(b"--b\n" + part + b"\n" for part in parts) + b"--b--"
    return message(b"multipart/" + kind + b"; boundary=b", body)


def part(body, content_type=b"text/plain", disposition=b""):
    shown = b"Content-Disposition: " + disposition + b"\n" if disposition else b""
    return b"Content-Type: " + content_type + b"\n" + shown + b"\n" + body


def test_a_mail_is_its_sentences_without_headers_quotes_and_signature(tmp_path):
    (tmp_path / "one.eml").write_bytes(MAIL)
    html = b"From: a@example.org\nContent-Type: text/html\n\n<p>Hello</p>\n"
    (tmp_path / "two.mbox").write_bytes(b"".join(LINE + m + b"\n" for m in (html, MAIL)))

    first, second, third = FilesCorpus(kind="files", source=str(tmp_path)).open().documents()

    assert first.texts == third.texts == ["Dear Bo, the café is closed.", "Come at 8.", "See you!"]
    assert first.left_out == {QUOTED: 3}
    assert (second.texts, second.left_out) == (["Hello"], {})


@pytest.mark.parametrize(
    "line",
    [
        b"From 10:00 on Monday, Mr. Lee is in room 2026.\nHe said: come.", b"From ada@example.org came this.",
        b">From my side the contract is fine.",
    ],
)  # fmt: skip
def test_a_sentence_that_begins_with_from_divides_no_message(tmp_path, line):
    body = b"From: a@example.org\n\nHello Mirko.\n\n" + line + b"\nPlease answer.\n\n"
    found = read(tmp_path / "a.mbox", LINE + body + LINE + b"From: b@example.org\n\nThank you.\n")
    text = line.decode().replace("\n", " ").removeprefix(">")
    assert [" ".join(one.texts) for one in found] == [f"Hello Mirko. {text} Please answer.", "Thank you."]


SAID = "Brändt “x”"


@pytest.mark.parametrize(
    ("content_type", "encoding", "guessed"),
    [
        ("", "cp1252", True),
        ("; charset=utf-8", "utf-8", False),
        ("; charset=utf-8", "mixed", True),
        ("; charset=iso-8859-1", "cp1252", False),
        ("; charset*=x\0'en'utf-8", "utf-8", True),
    ],
)
def test_bytes_outside_the_character_set_are_read_and_counted(tmp_path, content_type, encoding, guessed):
    body = SAID[:7].encode("cp1252") + SAID[7:].encode() if encoding == "mixed" else SAID.encode(encoding)
    kind = b"text/plain" + content_type.encode()
    (found,) = read(tmp_path / "a.eml", message(kind, b64encode(body), b"Content-Transfer-Encoding: base64"))
    assert found.texts == [SAID]
    assert list(found.guessed.values()) == [1] * guessed


def test_a_guessed_character_set_is_warned_about(tmp_path):
    for number in range(40):
        (tmp_path / f"{number}.eml").write_bytes(f"From: a@example.org\n\nBrändt number {number} came.\n".encode())
    options = ["--set", "cleaning={valid_sentences: 5, test_sentences: 5}", "--output", tmp_path / "out"]
    (warning,) = report("corpora", "--set", f"source={tmp_path}", *options)["warnings"]
    assert warning.startswith("40 texts of mail")


PICTURE = part(b"xx", b"image/png", b"inline; filename=x.png")
ONE, TWO = part(b"First part."), part(b"Second part.")
BOTH = ["First part.", "Second part."]
HTML = part(b"<b>Second</b> part.", b"text/html")


@pytest.mark.parametrize(
    ("content", "texts", "left_out"),
    [
        (mixed(ONE, PICTURE, TWO), BOTH, {ATTACHED: 1}),
        (mixed(ONE, HTML), BOTH, {}),
        (mixed(ONE, HTML, kind=b"alternative"), BOTH[:1], {}),
        (mixed(part(b" "), HTML, kind=b"alternative"), BOTH[1:], {}),
        (mixed(ONE, part(b"Notes.", b"text/plain", b"attachment; filename=n.txt")), BOTH[:1], {ATTACHED: 1}),
        (message(b"application/pdf", b"xx"), [], {ATTACHED: 1, NO_TEXT: 1}),
    ],
)
def test_all_parts_that_are_text_are_read_and_the_rest_is_counted(tmp_path, content, texts, left_out):
    (found,) = read(tmp_path / "a.eml", content)
    assert (found.texts, dict(found.left_out)) == (texts, left_out)


@pytest.mark.parametrize(
    ("html", "texts", "quoted"),
    [
        ("<html><head><title>T</title><style>p {x}</style></head><body>Dear&nbsp;Bo,<br>it is\nover.</body></html>",
         ["Dear Bo, it is over."], 0),
        ("<ul><li>One<li>Two &amp; &lt;three&gt;</ul><table><tr><td>a</td><td>b</td></tr></table>",
         ["One", "Two & <three>", "a", "b"], 0),
        ("Yes.<blockquote type=cite>Do <b>we</b> meet?<br>Bo</blockquote><div>See you!</div>", ["Yes.", "See you!"], 2),
        ("Yes.<br>&gt; Do we meet?<br><br>-- <br>Ada<br>Rome", ["Yes."], 4),
        ("<![if !mso]>One<![endif]><![foo bar]> more<!--[if mso]>x<![endif]--><script>var a = '<p>';</script>",
         ["One more"], 0),
    ],
)  # fmt: skip
def test_html_is_read_as_it_is_shown(tmp_path, html, texts, quoted):
    (found,) = read(tmp_path / "a.eml", message(b"text/html; charset=utf-8", html.encode()))
    assert (found.texts, found.left_out.get(QUOTED, 0)) == (texts, quoted)
