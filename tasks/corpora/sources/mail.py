"""Mail as it is stored: ``.eml``, one message a file, and ``.mbox``, many; each message is a document."""

import mailbox
from collections.abc import Iterator
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path

from tasks.corpora.sentences import split_sentences
from tasks.corpora.sources.document import Document, Part
from tasks.errors import CorpusError

QUOTED, NO_PLAIN_TEXT = "quoted", "no_plain_text"
"""Why a line, or a whole message, is left out."""
_SIGNATURE = "-- "


def mail_documents(path: Path, part: Part | None) -> Iterator[Document]:
    """The messages of a file, each with the sentences of its plain text.

    Headers are not read: they name people in a form of their own. What a message quotes (lines that begin with ``>``)
    and its signature are left out, since the quoted message mostly is there itself; both are counted.
    Raises ``CorpusError`` where the file holds no message.
    """
    empty = True
    for message in _messages(path):
        empty = False
        text = _plain_text(message)
        if text is None:
            yield Document([], part, left_out={NO_PLAIN_TEXT: 1})
        else:
            sentences, quoted = _sentences(text)
            yield Document(sentences, part, left_out={QUOTED: quoted} if quoted else {})
    if empty:
        raise CorpusError(f"{str(path)!r} holds no mail; give messages as .eml or .mbox files")


def _messages(path: Path) -> Iterator[EmailMessage]:
    if path.suffix.lower() == ".mbox":
        for stored in mailbox.mbox(path, create=False):
            yield _parsed(stored.as_bytes())
    elif content := path.read_bytes():
        yield _parsed(content)


def _parsed(content: bytes) -> EmailMessage:
    return message_from_bytes(content, policy=policy.default)


def _plain_text(message: EmailMessage) -> str | None:
    body = message.get_body(("plain",))
    if body is None:
        return None
    try:
        return str(body.get_content())
    except LookupError:  # a character set that Python does not know
        return bytes(body.get_payload(decode=True)).decode("utf-8", errors="replace")


def _sentences(text: str) -> tuple[list[str], int]:
    """The sentences of the paragraphs of a message, and how many lines were left out."""
    paragraphs: list[list[str]] = [[]]
    lines = text.splitlines()
    left_out = 0
    for number, line in enumerate(lines):
        if line == _SIGNATURE:
            left_out += len(lines) - number
            break
        if line.startswith(">"):
            left_out += 1
        elif line.strip():
            paragraphs[-1].append(line.strip())
        else:
            paragraphs.append([])
    return [sentence for lines in paragraphs for sentence in split_sentences(" ".join(lines))], left_out
