"""Each method's fills, however the text is divided and however often it is filled; and what copies give back."""

import random

import pytest
from fill_command import fill, report, write, write_masked
from pydantic import TypeAdapter, ValidationError

from tasks.filling import filled_lines
from tasks.filling.methods import AnyMethod

LINES = ["the {dog} sat on a {dog}", "{dog} {dog} ran.", "no marker", "THE {dog} SAT", "i saw {dog}"] * 2
METHODS = {
    "top_1": [],
    "top_k": ["k=3"],
    "sample": ["temperature=2.0"],
    "log_linear": ["weights={filler: 1.0, frequency: 1.0, average: 0.0}"],
    "unigram": [],
    "surrogate": [],
}


@pytest.mark.parametrize("method", METHODS)
def test_neither_parts_nor_batches_nor_further_copies_change_a_fill(folder, bert, monkeypatch, method):
    write_masked(LINES)
    write("kept.txt", ["the", "a", "cat"])
    write("counts.tsv", ["the\t90", "cat\t9", "Tom\t6", "dog\t5", "Paris\t3", "mat\t2", "red\t1"])
    files = {"allowed_words": "kept.txt", "word_counts": "counts.tsv", "sidecar": "sidecar.jsonl"}
    batches, settings = [], METHODS[method]
    if method not in ("unigram", "surrogate"):
        batches, files["filler"] = ["batch_sentences=1"], bert
    lines, measured = fill(method, *settings, **files)
    assert (measured["lines"], measured["markers"]) == (10, 12)
    assert measured["fills"] == (12 if method == "surrogate" else 10)
    monkeypatch.setattr(filled_lines, "PART_LINES", 3)
    copies = 1 if method == "top_1" else 3
    written, of_copies = fill(method, *settings, *batches, f"copies={copies}", **files)
    assert written[:10] == lines
    assert len({tuple(written[start : start + 10]) for start in range(0, len(written), 10)}) == copies
    assert (of_copies["lines"], of_copies["fills"]) == (10 * copies, copies * measured["fills"])
    assert report()["parameters"]["copies"] == copies


def test_a_word_that_any_copy_gives_back_is_given_back(folder, monkeypatch):
    """Each place hides one of three words, and is filled three times with one of them."""
    monkeypatch.setattr(filled_lines, "PART_LINES", 10)
    counts, dice = {"apple": 5, "pear": 3, "plum": 2}, random.Random(3)
    hidden = [dice.choices(list(counts), k=number % 3) for number in range(41)]
    write_masked([" ".join([":", *(f"{{{word}}} and" for word in words)]) for words in hidden])
    write("counts.tsv", [f"{word}\t{count}" for word, count in counts.items()])
    lines, measured = fill("unigram", "copies=3", word_counts="counts.tsv", sidecar="sidecar.jsonl")
    written = [line.removeprefix(":").replace(" and", "").split() for line in lines]
    places = restored = guessed = 0
    for number, words in enumerate(hidden):
        for slot, word in enumerate(words):
            places += 1
            restored += any(written[number + start][slot] == word for start in (0, 41, 82))
            guessed += 1 - (1 - counts[word] / 10) ** 3
    overall = measured["restoration"]["overall"]
    # Rounded to steps of five places, and of five times what the most frequent word adds.
    assert max(abs(overall["places"] - places), abs(overall["restored"] - restored)) < 5
    assert places > restored > places / 2
    assert overall["expected_by_frequency"] * overall["places"] == pytest.approx(guessed, abs=5 * 0.875)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"kind": "top_k", "k": 1}, "top_k with k=1 takes the best word, so that copies=2 would be the same text 2"),
        ({"kind": "surrogate", "consistent_within": "document"}, "set consistent_within: line, or leave copies out"),
        ({"kind": "free"}, "free takes the model's best sentence, so that copies=2"),
    ],
)
def test_copies_that_would_be_the_same_are_refused(settings, says):
    check = TypeAdapter(AnyMethod).validate_python
    assert check(settings).copies == 1
    with pytest.raises(ValidationError) as error:
        check({**settings, "copies": 2})
    assert says in str(error.value)
