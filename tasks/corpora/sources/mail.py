"""Stored mail: ``.eml``, one message a file, and ``.mbox``, many; each message is a document.

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
from html.parser import HTMLParser
from itertools import chain, pairwise
from pathlib import Path

from tasks.corpora.sources.document import Document, Part, split_sentences
from tasks.errors import CorpusError

QUOTED, ATTACHED, NO_TEXT = "quoted", "attachments", "no_text"
"""Reasons to leave out a line, a part of a message, or a whole message."""
UNKNOWN_CHARSET = (
    "texts of mail have bytes that are not in their character set; they were read as UTF-8 or Windows-1252"
)
_SIGNATURE = "-- "
_QUOTE = "> "
_ESCAPED = ">From "
_SEPARATOR = re.compile(rb"From (?:.*\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b.* \d{1,2}:\d\d.*\b\d{4}\b|\S+@\S+\s*$)")
"""Pattern of the line before each message of an mbox: a sender, and usually a date."""
_FIELD = re.compile(rb"[!-9;-~]+:|>?From ")
_WIDER = {"ascii": "utf-8", "iso8859-1": "cp1252", "gb2312": "gb18030", "euc_kr": "cp949", "shift_jis": "cp932"}
"""Wider character sets by name: senders mean them by these names, and they include the named set's characters."""


def mail_documents(path: Path, part: Part | None) -> Iterator[Document]:
    """The messages of a file, each with the sentences of its text.

    Headers are not read: they name people in a form of their own. Quoted messages (lines that begin with ``>``, in HTML
    ``blockquote``), the signature and attachments are left out: the quoted message is usually in the mail itself. All
    are counted. Raises ``CorpusError`` if the file has no message.
    """
    empty = True
    for content in _messages(path):
        empty = False
        left_out, guessed = Counter[str](), Counter[str]()
        sentences: list[str] = []
        parts = _text_parts(message_from_bytes(content), left_out)
        for one in parts:
            text, is_guess = _decoded(one)
            guessed[UNKNOWN_CHARSET] += is_guess
            found, quoted = _sentences(_text_of_html(text) if _is_html(one) else text)
            sentences += found
            left_out[QUOTED] += quoted
        left_out[NO_TEXT] += not parts
        yield Document(sentences, part, left_out=+left_out, guessed=+guessed)
    if empty:
        raise CorpusError(f"{str(path)!r} holds no mail; give messages as .eml or .mbox files")


def _messages(path: Path) -> Iterator[bytes]:
    if path.suffix.lower() == ".mbox":
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
    left_out = 0
    for number, line in enumerate(lines):
        if line == _SIGNATURE:
            left_out += len(lines) - number
            break
        if line.startswith(_ESCAPED):  # a sentence that could be taken for the beginning of a message
            line = line[1:]
        if line.startswith(">"):
            left_out += 1
        elif line.strip():
            paragraphs[-1].append(line.strip())
        else:
            paragraphs.append([])
    return [sentence for lines in paragraphs for sentence in split_sentences(" ".join(lines))], left_out


_UNSHOWN = frozenset(("script", "style", "title"))
_BLOCKS = frozenset(
    "address article aside blockquote body center dd div dl dt fieldset figure footer form h1 h2 h3 h4 h5 h6 header hr "
    "html li main nav ol p pre section table td th tr ul".split()
)


class _HtmlText(HTMLParser):
    """Parser of the lines that HTML shows, with quotes as in plain text and an empty line after each block."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._line = ""
        self._open: Counter[str] = Counter()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        """Begin a line where the element does; its ancestors decide how its text is read."""
        self.end_line(tag)
        self._open[tag] += 1

    def handle_endtag(self, tag: str) -> None:
        """End the line with the element."""
        self.end_line("" if tag == "br" else tag)
        self._open[tag] = max(self._open[tag] - 1, 0)

    def handle_data(self, data: str) -> None:
        """Collapse white space as HTML does; line ends count in preformatted text only."""
        if any(self._open[tag] for tag in _UNSHOWN):
            return
        first, *others = data.replace("\r", "").split("\n") if self._open["pre"] else [re.sub(r"\s+", " ", data)]
        self._line += first
        for line in others:
            self.end_line("br")
            self._line = line

    def end_line(self, tag: str) -> None:
        """End a line at the beginning or end of an element, if it has one."""
        if tag != "br" and tag not in _BLOCKS:
            return
        if self._line.strip():
            self.lines.append(_QUOTE * (self._open["blockquote"] > 0) + self._line.lstrip())
        if tag != "br":
            self.lines.append("")
        self._line = ""


def _text_of_html(text: str) -> str:
    reader = _HtmlText()
    reader.feed(text.replace("<![", "<!"))  # Outlook's form is a comment to browsers, but an error to Python
    reader.close()
    reader.end_line("p")
    return "\n".join(reader.lines)
