"""Exported chats: WhatsApp (text), Slack (a folder of days), Discord (DiscordChatExporter) and Telegram (JSON).

A message is a unit, and its author the document, with all messages of one author together; in Slack the thread is, if
there is one. Lines that no person wrote and media are left out and counted. Mentions and links leave their text.
"""

import html
import re
from collections.abc import Iterable, Iterator
from typing import Any

from tasks.corpora.forms import SENT_AT
from tasks.corpora.sources.given_file import MEDIA, NO_TEXT, SYSTEM, GivenFile, Unit

_AUTHOR = re.compile(r"([^:\"“]{1,60}): ?(.*)", re.DOTALL)
_OF_THE_APP = "\u200e"
"""Mark that WhatsApp on iOS puts before words of its own."""
_NO_WORDS = re.compile(r"<[^<>\n]{3,60}>|.{1,200}\((?:file attached|Datei angehängt|fichier joint|archivo adjunto)\)")
_DELETED = frozenset(("This message was deleted", "You deleted this message", "null", "Waiting for this message"))
_EDITED = re.compile(r"\s*\u200e?<[^<>\n]*edited[^<>\n]*>$")
_SLACK_LINK = re.compile(r"<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>")
_SENT_BY_PEOPLE = ("Default", "Reply", "19", "0", "message", None)
"""Types of messages in Discord and Telegram."""
_ATTACHED = ("attachments", "stickers", "embeds", "media_type", "photo", "file")


def is_chat_export(value: object) -> bool:
    """Whether a value of JSON is an export of Slack, Discord or Telegram."""
    if isinstance(value, list):
        return bool(value) and all(isinstance(one, dict) and "ts" in one and "type" in one for one in value[:20])
    return isinstance(value, dict) and (
        _is_discord(value) or _is_telegram(value) or (isinstance(value.get("chats"), dict) and "list" in value["chats"])
    )


def _is_discord(value: dict[str, Any]) -> bool:
    return "channel" in value and isinstance(value.get("messages"), list)


def _is_telegram(value: dict[str, Any]) -> bool:
    messages = value.get("messages")
    return isinstance(messages, list) and "type" in value and all("role" not in one for one in messages[:20])


def by_document(messages: Iterable[tuple[object, str]]) -> Iterator[Unit]:
    """The units of messages, those of one document after the other."""
    found: dict[object, list[str]] = {}
    for name, text in messages:
        found.setdefault(name, []).append(text)
    return (Unit(name, [text]) for name, texts in found.items() for text in texts)


def chat_units(value: Any, file: GivenFile) -> Iterator[Unit]:  # noqa: ANN401 - what JSON can hold
    """The messages of an export in JSON."""
    if isinstance(value, list):
        return by_document(_slack(value, file))
    chats = value["chats"]["list"] if "chats" in value else [value]
    return by_document(message for chat in chats for message in _messages(chat, file))


def _slack(messages: list[Any], file: GivenFile) -> Iterator[tuple[object, str]]:
    channel = file.path.parent.name
    for one in messages:
        text = one.get("text") or ""
        if one["type"] != "message" or one.get("subtype") not in (None, "thread_broadcast", "file_share", "me_message"):
            file.left_out[SYSTEM] += 1
        elif not text.strip():
            file.left_out[MEDIA if one.get("files") else NO_TEXT] += 1
        else:
            yield one.get("thread_ts") or (channel, one.get("user")), html.unescape(_SLACK_LINK.sub(_slack_text, text))


def _slack_text(found: re.Match[str]) -> str:
    kind, target, label = found.groups()
    return f"{kind.replace('!', '@')}{(label or target).removeprefix('@')}"


def _messages(chat: dict[str, Any], file: GivenFile) -> Iterator[tuple[object, str]]:
    """The messages of Discord, whose text is in ``content``, or of Telegram, whose text may be in pieces."""
    for one in chat.get("messages", []):
        author = one.get("author", {}).get("id") if isinstance(one.get("author"), dict) else one.get("from_id")
        text = one.get("content", one.get("text")) or ""
        pieces = text if isinstance(text, list) else [text]
        text = "".join(piece if isinstance(piece, str) else str(piece.get("text", "")) for piece in pieces)
        if one.get("type") not in _SENT_BY_PEOPLE:
            file.left_out[SYSTEM] += 1
        elif not text.strip():
            file.left_out[MEDIA if any(map(one.get, _ATTACHED)) else NO_TEXT] += 1
        else:
            yield author or one.get("from"), text


def whatsapp_units(file: GivenFile) -> Iterator[Unit]:
    """The messages of a text export of Android or iOS; lines without a date go on with the message before them."""
    return by_document(_whatsapp(file))


def _whatsapp(file: GivenFile) -> Iterator[tuple[object, str]]:
    held: list[str] = []
    for line in (*file.lines(), None):
        begun = SENT_AT.match(line) if line is not None else None
        if held and (line is None or begun):
            yield from _sent("\n".join(held), file)
            held = []
        if line is not None and (begun or held):
            held.append(line[begun.end() :] if begun else line)
        elif line and line.strip():
            file.left_out[SYSTEM] += 1


def _sent(message: str, file: GivenFile) -> Iterator[tuple[object, str]]:
    found = _AUTHOR.fullmatch(message)
    text = _EDITED.sub("", found.group(2)) if found else ""
    first, _, caption = text.partition("\n")
    if caption.strip() and _is_media(first):
        file.left_out[MEDIA] += 1
        text = caption
    if found is None or text.strip() in _DELETED:
        file.left_out[SYSTEM] += 1
    elif _is_media(text):
        file.left_out[MEDIA] += 1
    elif text.startswith(_OF_THE_APP):
        file.left_out[MEDIA if "omitted" in text else SYSTEM] += 1
    elif text.strip():
        yield found.group(1).strip(_OF_THE_APP).strip(), text
    else:
        file.left_out[NO_TEXT] += 1


def _is_media(text: str) -> bool:
    """Whether a text is WhatsApp's in place of a picture, recording or file."""
    return _NO_WORDS.fullmatch(text.strip(_OF_THE_APP).strip()) is not None
