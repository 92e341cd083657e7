"""The search itself: one that finds nothing anywhere would let every other test here pass."""

import base64
import gzip
import zipfile

import pytest
from canary_search import CanarySearch

SEARCH = CanarySearch(["Zyxwquill", "quorblatt77@hiddenmail.example"])


@pytest.mark.parametrize(
    "content",
    [
        "Yesterday Zyxwquill called.",
        "ZYXWQUILL",
        "to=quorblatt77%40hiddenmail.example",
        "with Zyxwquill".encode("utf-16-le"),
        base64.b64encode(b"Zyxwquill called"),
        base64.b64encode(b"1 Zyxwquill called"),
        base64.b64encode(b"a Zyxwquill called"),
        base64.b64encode(b"to zyxwquill called"),
    ],
)
def test_a_canary_is_found_in_every_form(content):
    assert len(SEARCH.found_in(content)) == 1


def test_other_words_are_not_canaries():
    assert SEARCH.found_in("Zyxw quill wrote to quorblatt@example.org" * 100) == []


def test_packed_files_and_names_are_searched(tmp_path):
    (tmp_path / "log.gz").write_bytes(gzip.compress(b"Zyxwquill"))
    with zipfile.ZipFile(tmp_path / "scores.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("words", "Zyxwquill " * 50)
    (tmp_path / "zyxwquill").mkdir()
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "mail.txt").write_text("Zyxwquill", encoding="utf-8")
    (tmp_path / "clean.txt").write_text("nothing", encoding="utf-8")
    held, searched = SEARCH.holders(tmp_path, ["raw/"])
    assert held == ["log.gz", "scores.npz", "the name zyxwquill"]
    assert searched == 3
