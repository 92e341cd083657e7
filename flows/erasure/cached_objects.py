"""Copies of files in DVC's cache: which of them nothing but one corpus has."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from flows.erasure.dvc_records import Record

_FOLDER = ".dir"
"""Ending of the hash of a folder; its object lists the hashes of the files in it."""


class CachedObjects:
    """The objects of one cache, as DVC 3 and DVC 2 lay them out."""

    def __init__(self, cache: Path) -> None:
        self._places = (cache / "files" / "md5", cache)

    def of(self, records: Iterable[Record]) -> set[str]:
        """Hashes of all outputs of these records, with those of the files in folders as far as the cache knows them."""
        found = set[str]()
        for digest in {digest for record in records for digest in record.outputs.values() if digest}:
            found.add(digest)
            if digest.endswith(_FOLDER):
                found.update(self._inside(digest))
        return found

    def files(self) -> Iterator[tuple[str, Path]]:
        """Every object with its file; what a killed process had begun to copy is there under a name of its own."""
        for place in self._places:
            for folder in sorted(place.glob("??")):
                yield from ((folder.name + file.name, file) for file in sorted(folder.iterdir()))

    def _inside(self, digest: str) -> Iterator[str]:
        for place in self._places:
            file = place / digest[:2] / digest[2:]
            if file.is_file():
                yield from (entry["md5"] for entry in json.loads(file.read_text(encoding="utf-8")))
