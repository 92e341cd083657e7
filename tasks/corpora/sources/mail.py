"""Stored mail: one message a file, or many in an mbox; a message is a document, and a thread is not divided.

The text of a message is the text of all its text parts, in their order. Of alternative forms (plain, HTML) the plain
one is read; HTML only if no other form has text. Bytes outside their character set are read as Windows-1252, and a
message without a character set as UTF-8: usually that is right, and it is counted.
"""

import codecs
import re
from collections import Counter
from collections.abc import Iterator
from email import message_from_bytes
from email.message import Message
from itertools import chain, pairwise
from pathlib import Path

from tasks.corpora.forms import path_ends
from tasks.corpora.sources.document import split_sentences
from tasks.corpora.sources.given_file import GivenFile, Unit
from tasks.corpora.sources.html_text import text_of_html
from tasks.errors import CorpusError

QUOTED, ATTACHED, NO_TEXT = "quoted", "attachments", "no_text"
"""Reasons to leave out a line, a part of a message, or a whole message."""
UNKNOWN_CHARSET = (
    "texts of mail have bytes that are not in their character set; they were read as UTF-8 or Windows-1252"
)
_SIGNATURE = "-- "
_ESCAPED = ">From "
_SEPARATOR = re.compile(rb"From (?:.*\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b.* \d{1,2}:\d\d.*\b\d{4}\b|\S+@\S+\s*$)")
"""Pattern of the line before each message of an mbox: a sender, and usually a date."""
_FIELD = re.compile(rb"[!-9;-~]+:|>?From ")
_ID = re.compile(r"<[^<>\s]+>")
_WROTE = "wrote|schrieb[^:\\n]{0,80}|a \u00e9crit|escribi\u00f3|ha scritto|schreef[^:\\n]{0,80}|escreveu|skrev"
_ANNOUNCED = re.compile(
    r"(?:On|Am|Le|El|Il|Op|Em|Den)\b[^\n]{0,200}\d[^\n]{0,200}(?:\n(?!>)[^\n]{1,200}){0,2}?"
    rf"(?:{_WROTE})\s?:[ \t]*(?=(?:\n\s*)*(?:>|\Z)|\n)"
)
"""The line before a quotation, on up to three lines, such as ``On 3 March 2026, Ada wrote:``."""
_NAME = r"(?:From|Sent|Date|To|Cc|Subject|Von|Gesendet|Datum|An|Betreff|De|Envoyé|À|Objet|Enviado|Para|Asunto)"
_OTHER_MESSAGE = re.compile(
    r"(?:[-_ ]{5,}|-+ ?[^-\n]{4,40}-+|\*?(?:From|Von|De)\*?:[^\n]*)[ \t]*\n\s*"
    rf"(?:\*?{_NAME}\s?:\*?[^\n]*(?:\n|$)){{2}}"
)
"""The header of a quoted message, as Outlook and forwarding write it."""
_BEGINS = re.compile(r"[-_*]|On |Am |Le |El |Il |Op |Em |Den |De|From|Von")
"""Beginnings of lines that are looked at for either."""
_WIDER = {"ascii": "utf-8", "iso8859-1": "cp1252", "gb2312": "gb18030", "euc_kr": "cp949", "shift_jis": "cp932"}
"""Wider character sets by name: senders mean them by these names, and they include the named set's characters."""


def mail_units(file: GivenFile) -> Iterator[Unit]:
    """The messages of a file, each with the sentences of its text, and the thread as its document.

    Headers are not read: they name people in a form of their own. Quoted messages (lines that begin with ``>``, in HTML
    ``blockquote``, with the line that announces them, and all after the header of another message), the signature and
    attachments are left out: the quoted message is usually in the mail itself. All are counted. Raises ``CorpusError``
    if the file has no message.
    """
    empty = True
    for content in _messages(file.path):
        empty = False
        sentences: list[str] = []
        message = message_from_bytes(content)
        parts = _text_parts(message, file.left_out)
        for one in parts:
            text, is_guess = _decoded(one)
            file.guessed[UNKNOWN_CHARSET] += is_guess
            found, quoted = _sentences(text_of_html(text, marks_quotes=True) if _is_html(one) else text)
            sentences += found
            file.left_out[QUOTED] += quoted
        file.left_out[NO_TEXT] += not parts
        yield Unit(_thread(message, file.threads), sentences)
    if empty:
        raise CorpusError(f"{file.name!r} holds no mail; give messages as .eml or .mbox files")


def _thread(message: Message, threads: dict[str, str]) -> str | None:
    """The first message of the thread, by the message's references and the earlier ones; ``None`` without an id."""
    own, earlier = (_ID.findall(" ".join(map(str, message.get_all(name, [])))) for name in ("Message-ID", "References"))
    earlier = earlier or _ID.findall(str(message.get("In-Reply-To", "")))[:1]
    first = next((threads[one] for one in earlier if one in threads), next(iter([*earlier, *own]), None))
    if first is not None:
        threads.update(dict.fromkeys([*own, *earlier], first))
    return first


def _messages(path: Path) -> Iterator[bytes]:
    with open(path, "rb") as stream:
        is_mbox = not path_ends(path, ".eml") and stream.read(5) == b"From "
    if is_mbox or path_ends(path, ".mbox"):
        yield from _stored_messages(path)
    elif content := path.read_bytes().removeprefix(codecs.BOM_UTF8).lstrip():
        yield content


def _stored_messages(path: Path) -> Iterator[bytes]:
    """The messages of an mbox. A sentence that begins with *From* divides none: it lacks sender and header."""
    message: list[bytes] = []
    with open(path, "rb") as stream:
        for line, following in pairwise(chain(stream, [b""])):
            if not message and not line.strip():
                continue
            if not message and not _FIELD.match(line):
                raise CorpusError(f"{str(path)!r} holds no mail at its beginning; give messages as .eml or .mbox files")
            if message and _SEPARATOR.match(line) and _FIELD.match(following):
                yield b"".join(message)
                message = []
            message.append(line)
    if message:
        yield b"".join(message)


def _text_parts(message: Message, left_out: Counter[str]) -> list[Message]:
    """The parts of a message that are its text; attachments are counted."""
    if message.get_content_maintype() == "multipart" and message.is_multipart():
        inner: list[Message] = message.get_payload()  # type: ignore[assignment]
        found = [_text_parts(one, left_out) for one in inner]
        if message.get_content_subtype() != "alternative":
            return [one for parts in found for one in parts]
        filled = [parts for parts in found if any(_content(one).strip() for one in parts)]
        return min(filled, key=lambda parts: all(map(_is_html, parts)), default=[])
    if message.get_content_type() in ("text/plain", "text/html") and message.get_content_disposition() != "attachment":
        return [message]
    left_out[ATTACHED] += message.get_content_maintype() != "multipart"
    return []


def _is_html(part: Message) -> bool:
    return part.get_content_type() == "text/html"


def _content(part: Message) -> bytes:
    content: bytes = part.get_payload(decode=True)  # type: ignore[assignment]
    return content


def _as_windows_1252(error: UnicodeError) -> tuple[str, int]:
    """The replacement of bytes outside a character set: Windows-1252, or else Latin-1."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    unknown = error.object[error.start : error.end]
    try:
        return unknown.decode("cp1252"), error.end
    except UnicodeDecodeError:
        return unknown.decode("latin-1"), error.end


codecs.register_error("as-windows-1252", _as_windows_1252)


def _decoded(part: Message) -> tuple[str, bool]:
    """The text of a part, and whether its character set was guessed."""
    content = _content(part)
    name = "utf-8"
    try:
        named = codecs.lookup(part.get_content_charset() or "ascii").name
        text = content.decode(_WIDER.get(named, named))
        return text, named == "ascii" and not content.isascii()
    except UnicodeDecodeError:
        name = _WIDER.get(named, named)
    except (LookupError, ValueError):  # no character set of Python's, or no name of one
        pass
    try:
        return content.decode("utf-8"), not content.isascii()
    except UnicodeDecodeError:
        return content.decode(name, "as-windows-1252"), True


def _sentences(text: str) -> tuple[list[str], int]:
    """The sentences of a message's paragraphs, and the number of lines left out."""
    paragraphs: list[list[str]] = [[]]
    lines = text.splitlines()
    left_out = announced = 0
    for number, line in enumerate(lines):
        following = "\n".join(lines[number : number + 6]) if _BEGINS.match(line) else ""
        if line == _SIGNATURE or _OTHER_MESSAGE.match(following):
            left_out += len(lines) - number
            break
        if not announced and (found := _ANNOUNCED.match(following)):
            is_before_quote = following[found.end() :].lstrip()[:1] in ("", ">")
            announced = (found.group().count("\n") + 1) * (is_before_quote or "@" in found.group())
        if line.startswith(_ESCAPED):  # a sentence that could be taken for the beginning of a message
            line = line[1:]
        if announced or line.startswith(">"):
            left_out += 1
            announced = max(announced - 1, 0)
        elif line.strip():
            paragraphs[-1].append(line.strip())
        else:
            paragraphs.append([])
    return [sentence for lines in paragraphs for sentence in split_sentences(" ".join(lines))], left_out
