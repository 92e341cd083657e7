"""The ledger: nothing is lost, and what it sums is what basic composition says."""

import pytest

from tasks.errors import CorpusError
from tasks.privacy.ledger import Release, append_to_ledger, epsilon_spent, read_ledger


def release(name, epsilon, counts=None):
    when, cell = "2026-01-01T00:00:00+00:00", "mail/crf/unigram-1"
    return Release(name, when, cell, "mail", "crf", "c0", "k0", 3, "line", epsilon, 1, counts, {"text.txt": "00"})


def test_releases_come_back_in_order_and_a_damaged_line_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "data" / "private" / "ledger.jsonl"
    path.parent.mkdir(parents=True)
    assert read_ledger() == []
    made = [release("one", 0.0), release("two", 1.5, "a")]
    for one in made:
        append_to_ledger(one)
    assert read_ledger() == made
    assert path.stat().st_mode & 0o077 == 0
    path.write_text(path.read_text(encoding="utf-8") + '{"name": "thr', encoding="utf-8")
    with pytest.raises(CorpusError, match="line 3 is no entry"):
        read_ledger()


@pytest.mark.parametrize(
    ("releases", "spent"),
    [
        ([], 0.0),
        ([release("a", 0.0), release("b", 2.0, "x")], 2.0),
        ([release("a", 2.0, "x"), release("b", 2.0, "x"), release("c", 1.0, "y")], 3.0),
        ([release("a", 2.0, "x"), release("b", None)], None),
    ],
)
def test_each_set_of_counts_is_paid_once(releases, spent):
    assert epsilon_spent(releases) == spent
