"""What a fill promises, what the ledger sums, and what releases show together: answers worked out by hand."""

import pytest

from tasks.corpora.sidecar import MaskedSpan, read_sidecar, write_sidecar
from tasks.errors import CorpusError
from tasks.filling.methods import AnyMethod
from tasks.privacy.earlier_releases import RAW, SIDECAR, shared_lines
from tasks.privacy.ledger import Release, append_to_ledger, epsilon_of, read_ledger
from tasks.settings.checks import check_settings


def test_epsilon_is_of_all_that_the_fill_reads():
    for settings, epsilon in [
        *(({"kind": kind}, 0.0) for kind in ("top_1", "top_k", "sample", "free", "unigram", "log_linear")),
        ({"kind": "log_linear", "prior": "domain", "copies": 3}, 0.0),
        ({"kind": "unigram", "prior": "counted", "counts": {"epsilon": 2.5}}, 2.5),
        ({"kind": "log_linear", "prior": "counted", "counts": {"epsilon": 8.0, "unit": "document"}, "copies": 2}, 8.0),
        ({"kind": "surrogate"}, None),
        ({"kind": "top_k", "classes": "match"}, None),
    ]:
        assert epsilon_of(check_settings(AnyMethod, settings, "filling")) == epsilon


def write(folder, lines):
    """Lines whose words in capitals are masked."""
    folder.mkdir(parents=True)
    (folder / RAW).write_text("".join(f"{line.lower()}\n" for line in lines), encoding="utf-8")
    spans = []
    for line in lines:
        found, start = [], 0
        for word in line.split(" "):
            if word.isupper():
                found.append(MaskedSpan(start, start + len(word), "MASK", "by hand", word.lower(), len(found)))
            start += len(word) + 1
        spans.append(found)
    write_sidecar(folder / SIDECAR, spans)
    return folder


def entry(name, epsilon=0.0, counts=None, unit="line"):
    return Release(name, "2026-01-01", "c", "mail", "t", "h", None, 1, unit, epsilon, None, counts, {"text.txt": "00"})


def test_releases_come_back_in_order_and_a_damaged_line_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "data" / "private" / "ledger.jsonl"
    path.parent.mkdir(parents=True)
    assert read_ledger() == []
    made = [entry("one"), entry("two", 1.5, "a")]
    for one in made:
        append_to_ledger(one)
    assert read_ledger() == made
    assert path.stat().st_mode & 0o077 == 0
    path.write_text(path.read_text(encoding="utf-8") + '{"name": "thr', encoding="utf-8")
    with pytest.raises(CorpusError, match="line 3 is no entry"):
        read_ledger()


def test_two_releases_show_what_one_of_them_keeps(tmp_path):
    ours = write(tmp_path / "ours", ["ANNA saw bob", "ANNA saw bob", "thanks", "CARLA left", "DORA AND eve"])
    write(tmp_path / "copies" / "one", ["anna saw BOB", "thanks", "somebody ELSE", "DORA and eve"])
    write(tmp_path / "copies" / "two", ["DORA and EVE", "thanks"])
    write(tmp_path / "copies" / "other", ["thanks", "thanks"])
    earlier = [entry("one"), entry("two"), entry("other")]
    shared = shared_lines(ours / RAW, ours / SIDECAR, earlier, tmp_path / "copies")
    # "thanks" has nothing masked; Carla stands in no earlier release.
    assert shared.lines == {"one": 3, "two": 1}
    # Anna and Bob twice, each shown by the other one; of Dora, and, Eve all but Dora.
    assert (shared.shown, shared.masked) == (2 * 2 + 2, 2 * 2 + 3)
    # All of them mask Dora; Carla is in no earlier one.
    hidden = shared.write_hidden(ours / RAW, ours / SIDECAR, tmp_path / "hidden.jsonl")
    assert [[span.original for span in spans] for spans in read_sidecar(hidden)] == [[], [], [], ["carla"], ["dora"]]
    alone = shared_lines(ours / RAW, ours / SIDECAR, [entry("gone")], tmp_path / "copies")
    assert alone.unknown == ["gone"]


LINE = "ANNA told them about the house in chicago and the dog"
OTHER = "we never went to the office because nobody had asked"


@pytest.mark.parametrize(
    ("theirs", "lines", "edited"),
    [
        (LINE.replace("chicago", "chi-cago").replace(" the", "\u00a0the").replace("told", "Told,"), 1, 0),
        (LINE.replace("told", "said to").replace("dog", "cat"), 1, 1),
        (f"ANNA {OTHER}", 0, 0),
    ],
    ids=["divided", "edited", "another"],
)
def test_a_line_is_the_same_by_its_letters_and_edited_where_half_of_the_shorter_one_is(tmp_path, theirs, lines, edited):
    ours = write(tmp_path / "ours", [LINE, "thanks"])
    write(tmp_path / "copies" / "one", [theirs, "thanks", "thanks for everything"])
    shared = shared_lines(ours / RAW, ours / SIDECAR, [entry("one")], tmp_path / "copies")
    assert (shared.lines, shared.edited) == ({"one": 1} if lines else {}, {"one": 1} if edited else {})
    assert (shared.shown, shared.masked) == (0, lines - edited)


def test_each_form_of_a_line_costs_its_counts_once(tmp_path):
    """Night after night the same counts are one; a line that was edited is counted again, and both have left."""

    more, said = f"{LINE} sent from my phone", LINE.title().replace("Anna", "ANNA")
    for name, lines in {"a": [LINE], "b": [LINE, OTHER], "c": [more, OTHER], "d": [said]}.items():
        write(tmp_path / "copies" / name, lines)
    ours = write(tmp_path / "ours", [LINE, more.replace("sent", "wrote"), "CARLA left"])
    for earlier, counts, spent in [
        ([], "x", 1),
        ([entry("a", 1.0, "x"), entry("b", 1.0, "x")], "x", 1),
        ([entry("a", 1.0, "y"), entry("b", 1.0, "y")], "x", 2),
        ([entry("a", 1.0, "y"), entry("b", 1.0, "z")], "x", 3),
        ([entry("c", 1.0, "x")], "x", 2),
        ([entry("c", 1.0, "y"), entry("d", 0.5, "z")], "x", 2.5),
    ]:
        shared = shared_lines(ours / RAW, ours / SIDECAR, earlier, tmp_path / "copies")
        assert shared.spent(earlier, counts, 1.0, "line") == spent, (earlier, counts)
    lost = [entry("gone", 1.0, "w")]
    shared = shared_lines(ours / RAW, ours / SIDECAR, lost, tmp_path / "copies")
    assert shared.among(lost, "mail") == lost
    assert shared.among(lost, "post") == []
    assert shared.spent(lost, "x", 1.0, "line") == 2
