"""Where planted words stand: plainly, in other encodings, and inside packed files."""

import base64
import gzip
import io
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path


class CanarySearch:
    """Looks for words of private text, in any case and in the forms in which programs write them down."""

    def __init__(self, canaries: Iterable[str]) -> None:
        self._plain = {form: canary for canary in canaries for form in _plain_forms(canary)}
        self._coded = {form: canary for canary in canaries for form in _base64_forms(canary)}

    def found_in(self, content: bytes | str) -> list[str]:
        """The canaries that stand in a piece of data."""
        data = content.encode() if isinstance(content, str) else content
        lowered = data.lower()
        found = {canary for form, canary in self._plain.items() if form in lowered}
        # Base64 tells upper from lower case.
        found |= {canary for form, canary in self._coded.items() if form in data}
        return sorted(found)

    def holders(self, folder: Path, allowed: Iterable[str] = ()) -> tuple[list[str], int]:
        """Files below a folder whose name or content holds a canary, and how many were looked at.

        ``allowed``: beginnings of paths, relative to the folder, that are left out.
        """
        held, searched = [], 0
        for path in sorted(folder.rglob("*")):
            name = path.relative_to(folder).as_posix()
            if f"{name}/".startswith(tuple(allowed)):
                continue
            if self.found_in(name):
                held.append(f"the name {name}")
            if path.is_file():
                searched += 1
                held += [name for part in unpacked(path) if self.found_in(part)]
        return list(dict.fromkeys(held)), searched


def _plain_forms(canary: str) -> Iterator[bytes]:
    lowered = canary.lower()
    yield lowered.encode()
    yield lowered.encode("utf-16-le")
    yield lowered.replace("@", "%40").encode()


def _base64_forms(canary: str) -> Iterator[bytes]:
    """Those of each place that a word may have between groups of three bytes, without digits that neighbours share."""
    for text in (canary, canary.lower()):
        for before in range(3):
            digits = base64.b64encode(b"\0" * before + text.encode())
            yield digits[4 if before else 0 : -4]


def unpacked(path: Path) -> Iterator[bytes]:
    """The content of a file, and that of what is packed in it."""
    content = path.read_bytes()
    yield content
    if content.startswith(b"\x1f\x8b"):
        yield gzip.decompress(content)
    elif content.startswith(b"PK\x03\x04"):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for name in archive.namelist():
                yield archive.read(name)
