"""The search itself: one that finds nothing anywhere would let every other test here pass."""

import base64
import bz2
import gzip
import html
import io
import json
import lzma
import quopri
import sqlite3
import struct
import subprocess
import tarfile
import unicodedata
import urllib.parse
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
import zstandard
from canary_search import CanarySearch
from tokenizers_in_use import encoders
from unpacking import unpacked

NAME, ADDRESS, GERMAN, RUSSIAN = "Zyxwquill", "quorblatt77@hiddenmail.example", "Süßkwark", "Квиллмойров"
LINE = "powder relief poster prevention map"
TEXT = f"Yesterday {NAME} said that {LINE} is known to {GERMAN}, {RUSSIAN} and {ADDRESS}, who called.\n"
CANARIES = [NAME, ADDRESS, GERMAN, RUSSIAN, LINE]
ROOT = Path(__file__).parents[2]
RAW = TEXT.encode()


def in_zip(data: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("words", data)
    return packed.getvalue()


def in_tar(data: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        member = tarfile.TarInfo("words")
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    return packed.getvalue()


def in_database(text: str) -> bytes:
    """In cells that are so long that they are cut over pages."""
    with sqlite3.connect(":memory:") as store:
        store.execute("pragma page_size = 512")
        store.execute("create table kept (value text)")
        for before in range(0, 512, 5):
            store.execute("insert into kept values (?)", ["." * before + text * 3])
        store.commit()
        return store.serialize()


FORMS = {
    "plain": RAW,
    "upper case": TEXT.upper().encode(),
    "lower case": TEXT.lower().encode(),
    "decomposed": unicodedata.normalize("NFD", TEXT).encode(),
    "without accents": TEXT.replace("ü", "u").replace("й", "и").encode(),
    **{name: TEXT.encode(name) for name in ("utf-16", "utf-16-be", "utf-32", "utf-32-be")},
    "hexadecimal": RAW.hex().encode(),
    "hexadecimal, upper case": RAW.hex().upper().encode(),
    **{f"base64, {skipped} bytes on": base64.b64encode(b"." * skipped + RAW) for skipped in range(3)},
    "base64 in lines": base64.encodebytes(RAW),
    "base64 of addresses": base64.urlsafe_b64encode(RAW),
    "quoted-printable": quopri.encodestring(RAW),
    "address": urllib.parse.quote(TEXT).encode(),
    "address in an address": urllib.parse.quote(urllib.parse.quote_plus(TEXT)).encode(),
    "entities": "".join(f"&#{ord(letter)};" for letter in TEXT).encode(),
    "escaped for a page": html.escape(TEXT).encode("ascii", "xmlcharrefreplace"),
    "json": json.dumps(TEXT).encode(),
    "json in json": json.dumps(json.dumps(TEXT)).encode(),
    "list of words in json": json.dumps(TEXT.split(), indent=2).encode(),
    "as git quotes names": "".join(f"\\{byte:o}" if byte > 127 else chr(byte) for byte in RAW).encode(),
    "as Python shows bytes": repr(RAW).encode(),
    "zlib": zlib.compress(RAW),
    "deflate": zlib.compress(RAW)[2:-4],
    "gzip": gzip.compress(RAW),
    "bz2": bz2.compress(RAW),
    "xz": lzma.compress(RAW),
    "lzma": lzma.compress(RAW, lzma.FORMAT_ALONE),
    "zstandard": zstandard.compress(RAW),
    "zip": in_zip(RAW),
    "tar": in_tar(RAW),
    "gzip behind other bytes": b"header" * 100 + gzip.compress(RAW) + b"footer",
    "the second of two gzips": gzip.compress(b"nothing") + gzip.compress(RAW),
    "gzip in zip in tar in xz": lzma.compress(in_tar(in_zip(gzip.compress(RAW)))),
}


@pytest.fixture(scope="module")
def search() -> CanarySearch:
    return CanarySearch(CANARIES)


def test_every_canary_is_found_in_every_form_and_other_words_are_none(search):
    for form in FORMS:
        found = set().union(*map(search.found_in, unpacked(FORMS[form])))
        assert sorted(found) == sorted(CANARIES), form
    assert search.found_in("user=quorblatt77; host=unknown") == [ADDRESS]  # the first part will do
    _, cells = [part for part in unpacked(in_database(TEXT)) if NAME.encode() in part]
    assert cells.count(NAME.encode()) == 103 * 3
    text = "Zyxw quill, suss kwark wrote to quorblatt@example.org: powder, relief and a prevention map. 97 114 " * 99
    for packed in (text.encode(), zlib.compress(text.encode()), text.encode("utf-16"), base64.b64encode(text.encode())):
        assert not any(search.found_in(part) for part in unpacked(packed))


def test_files_names_and_all_that_git_has_ever_taken_are_searched(search, tmp_path):
    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", "-C", str(tmp_path), *identity, *arguments], check=True, capture_output=True)

    git("init", "--quiet")
    for number in range(3):
        lines = [f"a line that is the same {count}" for count in range(200)]
        (tmp_path / "notes.txt").write_text("\n".join([*lines, TEXT * (number == 1), str(number)]), encoding="utf-8")
        git("add", "-A")
        git("commit", "--quiet", "-m", "more")
    for path, content in {
        "log.gz": gzip.compress(RAW),
        f"{GERMAN.lower()}/clean.txt": b"nothing",
        "raw/mail.txt": RAW,
        ".dvc/cache/files/md5/ab/cdef": RAW,
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(content)
    for command in ("status", "gc --quiet --aggressive --prune=now"):  # loose, then packed
        git(*command.split())
        held, searched = search.holders(tmp_path, ["raw/"])
        assert {without_number(name) for name in held} == {
            f"the name {GERMAN.lower()}",
            f"the name {GERMAN.lower()}/clean.txt",
            ".dvc/cache/files/md5/ab/cdef",
            "log.gz",
            "git's blob",
        }
        assert searched > 10


def without_number(name: str) -> str:
    """A name without the number of a blob."""
    return name[:10] if name.startswith("git's blob") else name


@pytest.mark.slow  # a GGUF file of 90 MB is read for its tokenizer
def test_the_numbers_of_every_tokenizer_are_found():
    """Of MiniLM's word pieces, SmolLM2's byte pairs, and the shipped recogniser's SentencePiece units."""
    known_encoders = encoders(ROOT)
    assert len(known_encoders) == 5
    search = CanarySearch(CANARIES, known_encoders)
    numbered = [(canary, encode(canary)) for encode in known_encoders for canary in CANARIES]
    known = [(canary, numbers) for canary, numbers in numbered if numbers is not None]
    assert len(known) >= 15
    for canary, numbers in known:
        around = [4321, *numbers, 8]
        for form in ("i4", "i8", *["u2"] * (max(around) < 2**16)):
            assert search.found_in(b"head" + np.array(around, dtype=f"<{form}").tobytes()) == [canary]
        assert search.found_in(json.dumps({"ids": around})) == [canary]
        assert search.found_in(json.dumps(around, indent=1)) == [canary]
        assert search.found_in(struct.pack("<4i", 5, *numbers[:2], 7)) == []
