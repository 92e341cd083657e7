"""The record of a review: what is written, read, refused and shown, and how far two reviewers agree."""

import re
from dataclasses import replace
from multiprocessing import get_context

import pytest
from reviewed_corpus import LINES, begin, mark, plan

from tasks.errors import CorpusError
from tasks.review import record
from tasks.review.agreement import agreements, cohens_kappa
from tasks.review.reading import Reading
from tasks.review.record import Mark, Review, ReviewedLine

ANNA = (mark(0, "Anna"), mark(0, "Smith"), mark(0, "Rome", "LOCATION", False))


def line(number: int, *marks: Mark, by: str = "ann", when: str = "2026-01-01T00:00:00+00:00") -> ReviewedLine:
    return ReviewedLine(number, by, when, 2.5, record.line_digest(LINES[number]), marks)


def test_a_review_is_read_as_it_was_written_and_closed_to_others(corpus):
    path = record.path_of("mail")
    record.create(path, plan())
    record.append(path, [line(3), line(0, *ANNA)])
    record.append(path, [line(3, mark(3, "Zoë"))])
    assert record.read(path) == Review(plan(), (line(0, *ANNA), line(3, mark(3, "Zoë"))))
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert not any(word in path.read_text(encoding="utf-8") for word in ("Anna", "Rome", "Zoë"))
    with pytest.raises(CorpusError, match="exists already"):
        record.create(path, plan())


@pytest.mark.parametrize(("old", "new"), [('"label"', '"lable"'), ("^.*$", "[]"), (".{20}$", "")])
def test_a_damaged_line_is_named_without_a_word_of_it(corpus, old, new):
    path = record.path_of("mail")
    record.create(path, plan())
    record.append(path, [line(3), line(0, *ANNA)])
    *whole, last = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([*whole, re.sub(old, new, last, count=1)]), encoding="utf-8")
    with pytest.raises(CorpusError, match=r"mail\.jsonl': line 3 is damaged: ") as caught:
        record.read(path)
    assert "Anna" not in str(caught.value)


def append_forty(path, name):
    for n in range(40):
        record.append(path, [ReviewedLine(n % 6, f"{name}{n}", "w", 1.0, "d", ())])


def test_processes_that_append_at_once_lose_nothing(corpus):
    path = record.path_of("mail")
    record.create(path, plan())
    started = [get_context("fork").Process(target=append_forty, args=(path, name)) for name in "ab"]
    for process in started:
        process.start()
    for process in started:
        process.join(60)
    assert [process.exitcode for process in started] == [0, 0]
    assert len(record.read(path).lines) == 80


def test_lines_beyond_a_gap_wait_and_marks_of_two_are_united(corpus):
    # The queue is 3, 0, 2, 1, 5, 4.
    rome = mark(0, "Rome", "ORGANISATION", True)
    later = line(0, rome, by="bob", when="2026-01-02T00:00:00+00:00")
    review = Review(plan(), (later, line(0, *ANNA), line(3), line(1)))
    assert (record.prefix_length(review), record.waiting(review)) == (2, 1)
    assert record.marks_of(review) == {3: (), 0: (*ANNA[:2], replace(ANNA[2], direct=True))}


def test_a_review_of_another_text_is_refused(corpus):
    text = corpus / "data/private/corpora/mail/train.txt"
    path = record.path_of("mail")
    assert record.review_of("mail", text) is None
    record.create(path, plan())
    record.append(path, [line(3), line(0, *ANNA)])
    assert record.review_of("mail", text) is not None
    text.write_text("\n".join(["Anna Smith lives in Roma.", *LINES[1:]]) + "\n", encoding="utf-8")
    with pytest.raises(CorpusError, match=r"edited since: of 2 reviewed lines 1 differ"):
        record.review_of("mail", text)
    text.write_text("Another text.\n", encoding="utf-8")
    with pytest.raises(CorpusError, match="it is a review of another text"):
        record.review_of("mail", text)


def test_a_shipped_review_counts_for_its_very_text_and_is_extended_as_the_users(corpus, monkeypatch):
    monkeypatch.setattr(record, "SHIPPED", corpus / "shipped")
    record.create(corpus / "shipped" / "mail.jsonl", plan())
    record.append(corpus / "shipped" / "mail.jsonl", [line(3)])
    text = corpus / "data/private/corpora/mail/train.txt"
    assert record.review_of("mail", text) == Review(plan(), (line(3),))
    Reading("mail", "allow_list", "bob", 20.0).save(0, ANNA, 1.0)
    extended = record.read(record.path_of("mail")).lines
    assert [(each.line, each.reviewer) for each in extended] == [(3, "ann"), (0, "bob")]
    record.path_of("mail").unlink()
    text.write_text("Another text.\n", encoding="utf-8")
    assert record.review_of("mail", text) is None


def test_a_reading_goes_on_goes_back_and_ends(corpus):
    reading = begin(stop=3)
    reading.save(3, [mark(3, "Zoë")], 1.0)
    reading.save(0, ANNA, 1.0)
    reading.undo()
    reading.undo()
    assert [word["text"] for word in reading.shown(3)["words"] if word["mark"]] == ["Zoë"]
    for line, marks in ((3, ()), (0, ANNA), (2, ())):
        assert reading.next_line() == line
        reading.save(line, marks, 1.0)
    assert reading.next_line() is None
    # Another process goes on where this one ended, and a second reader gets the lines of the first.
    assert begin().next_line() == 1
    assert begin("bob", second=True).to_read() == [3, 0, 2]
    assert record.marks_of(reading.review) == {3: (), 0: ANNA, 2: ()}


def test_two_reviewers_are_compared_word_by_word(corpus):
    begin().save(3, [mark(3, "Zoë")], 1.0)
    begin().save(0, [mark(0, "Anna"), mark(0, "Rome", "LOCATION", False)], 1.0)
    second = begin("bob", second=True)
    second.save(3, [mark(3, "Zoë")], 1.0)
    second.save(0, [mark(0, "Anna", direct=False), mark(0, "Smith"), mark(0, "Rome", "ORGANISATION", False)], 1.0)
    (found,) = agreements(second.review, LINES)
    # Line 4 has the words Zoë said hi to Tom aunt, line 1 five. Both mark Zoë, Anna and Rome, bob marks Smith too.
    assert (found.reviewers, found.lines, found.words) == (("ann", "bob"), 2, 11)
    chance = (3 * 4 + 8 * 7) / 121
    assert found.kappa_marked == pytest.approx((10 / 11 - chance) / (1 - chance))
    # Equal classes: 7 words that neither marks; Zoë and Anna as persons. ann has 2 persons and a place, bob 3 persons.
    chance = (8 * 7 + 2 * 3) / 121
    assert found.kappa_class == pytest.approx((9 / 11 - chance) / (1 - chance))
    differing = [(each.line, LINES[each.line][each.start : each.end]) for each in found.differences]
    assert differing == [(0, "Anna"), (0, "Smith"), (0, "Rome")]
    assert cohens_kappa([("n", "n")] * 3) is None
