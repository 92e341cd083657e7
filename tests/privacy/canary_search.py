"""Where planted words stand: plainly, in other encodings, in packed files, as the numbers of a tokenizer."""

import base64
import hashlib
import html
import re
import struct
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from unpacking import pieces, unpacked

Encoder = Callable[[str], list[int] | None]
"""From text to the numbers of its tokens; ``None`` where the tokenizer does not know all of it."""
SHORTEST = 3
"""Tokens. Fewer numbers stand in any file by chance."""
_ESCAPED = re.compile(
    rb"\\+u([0-9a-fA-F]{4})|\\+x([0-9a-fA-F]{2})|\\+([0-3][0-7]{2})|[%=]([0-9a-fA-F]{2})|(=\r?\n)|(\\+[nrt])"
)
_ACCENTS = re.compile("[\u0300-\u036f]+")
_BETWEEN_WORDS = re.compile(r"[\W_]+")
_URL_SAFE = bytes.maketrans(b"-_", b"+/")


class CanarySearch:
    """Looks for words of private text, in any case and in the forms in which programs write them down.

    A canary of several words is found whatever stands between them; of an address the part before the @ will do.
    """

    def __init__(self, canaries: Iterable[str], encoders: Iterable[Encoder] = ()) -> None:
        self._words: dict[str, str] = {}
        self._bytes: dict[bytes, str] = {}
        self._exact: dict[bytes, str] = {}
        self._base64: dict[bytes, str] = {}
        self._known: dict[bytes, list[str]] = {}
        """Answers by the hash of the data: a cache and a folder hold the same files."""
        encoders = list(encoders)
        for canary in canaries:
            for text in {canary, canary.partition("@")[0]}:
                self._words[readable(text.encode()).strip()] = canary
                for form in _forms(text):
                    self._bytes |= dict.fromkeys(_wide_and_hexadecimal(form), canary)
                    self._base64 |= dict.fromkeys(_base64_forms(form), canary)
                    for encode in encoders:
                        numbers = encode(form)
                        if numbers is not None and len(numbers) >= SHORTEST:
                            self._exact |= dict.fromkeys(_arrays(numbers), canary)
                            self._words[f" {' '.join(map(str, numbers))} "] = canary

    def found_in(self, content: bytes | str) -> list[str]:
        """The canaries that stand in a piece of data, which is not unpacked."""
        data = content.encode() if isinstance(content, str) else content
        key = hashlib.blake2b(data).digest()
        if key not in self._known:
            self._known[key] = self._found_in(data)
        return self._known[key]

    def _found_in(self, data: bytes) -> list[str]:
        text, lowered, unbroken = readable(data), data.lower(), data.translate(_URL_SAFE, b"\r\n")
        found = {canary for form, canary in self._words.items() if form in text}
        found |= {canary for form, canary in self._bytes.items() if form in lowered}
        found |= {canary for form, canary in self._exact.items() if form in data}
        # Base64 tells upper from lower case.
        found |= {canary for form, canary in self._base64.items() if form in unbroken}
        return sorted(found)

    def holders(self, folder: Path, allowed: Iterable[str] = ()) -> tuple[list[str], int]:
        """Files below a folder whose name or content holds a canary, and how many were looked at.

        ``allowed``: beginnings of paths, relative to the folder, that are left out. What git keeps is unpacked.
        """
        allowed = tuple(allowed)
        names = [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*"))]
        held = [f"the name {name}" for name in names if not f"{name}/".startswith(allowed) and self.found_in(name)]
        searched = 0
        for name, content in pieces(folder, allowed):
            searched += 1
            held += [name for part in unpacked(content) if self.found_in(part)]
        return list(dict.fromkeys(held)), searched


def readable(data: bytes) -> str:
    """The words of a piece of data, without case and accents, as they stand and with every escape undone.

    One space stands between two words, and before the first and behind the last.
    """
    seen = [data]
    for _ in range(2):  # an escape of an escape is usual: JSON in JSON, an address in an address
        undone = _ESCAPED.sub(_undo, seen[-1])
        if undone == seen[-1]:
            break
        seen.append(undone)
    texts = [form.decode("utf-8", "replace") for form in seen]
    texts += [html.unescape(text) for text in texts if "&" in text]
    # Compatible forms, too: a capital ß is SS, and an uncased tokenizer takes the dots away.
    plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", "\n".join(texts)).casefold())
    return f" {_BETWEEN_WORDS.sub(' ', plain).strip()} "


def _undo(match: re.Match[bytes]) -> bytes:
    unicode, hexadecimal, octal, quoted, soft_break, _ = match.groups()
    if unicode:
        return chr(int(unicode, 16)).encode("utf-8", "replace")
    if hexadecimal or quoted:
        return bytes([int(hexadecimal or quoted, 16)])
    if octal:
        return bytes([int(octal, 8)])
    return b"" if soft_break else b" "


def _forms(text: str) -> Iterator[str]:
    for cased in (text, text.lower(), text.upper()):
        for normal in ("NFC", "NFD"):
            yield unicodedata.normalize(normal, cased)


def _wide_and_hexadecimal(text: str) -> Iterator[bytes]:
    """With ASCII in lower case, as the data they are looked for in."""
    for encoding in ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "latin-1", "cp1251"):
        with suppress(UnicodeEncodeError):  # an alphabet of 256 characters lacks most
            yield text.encode(encoding).lower()
    yield text.encode().hex().encode()


def _base64_forms(text: str) -> Iterator[bytes]:
    """Those of each place that a word may have between groups of three bytes, without digits that neighbours share."""
    data = text.encode()
    for before in range(3):
        digits = base64.b64encode(b"\0" * before + data)
        yield digits[-(-8 * before // 6) : 8 * (before + len(data)) // 6]


def _arrays(numbers: list[int]) -> Iterator[bytes]:
    for kind in "HIQ":
        if max(numbers) < 1 << 8 * struct.calcsize(f"<{kind}"):
            yield struct.pack(f"<{len(numbers)}{kind}", *numbers)
