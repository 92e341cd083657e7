"""What substitutes tell of each other."""

import random

import pytest
from made_up_words import made_up_words
from marked_text import MaskedText

from tasks.audit.linkage import detected_substitutes, found_by_second_fill, linked_mentions
from tasks.filling.aligned_fills import filled_lines
from tasks.filling.frequencies.word_frequencies import AllowedWords
from tasks.filling.masked_sentence import read_masked_line

WORDS = made_up_words(400)


def drawn_text(tmp_path, substitute):
    """Lines of five words, of which the second and fourth are masked: one of three names each. With a fill."""
    draw = random.Random(5)
    lines, fills = [], []
    for line in range(200):
        names = draw.choices(["anna", "bob", "carla"], k=2)
        kept = draw.choices(WORDS, k=3)
        lines.append(f"{kept[0]} {{{names[0]}}} {kept[1]} {{{names[1]}}} {kept[2]}")
        written = [substitute(draw, line, name) for name in names]
        fills.append(f"{kept[0]} {written[0]} {kept[1]} {written[1]} {kept[2]}")
    text = MaskedText.write(tmp_path, lines)
    return text, list(filled_lines(text.masked, text.other("fill.txt", fills)))


def test_words_off_the_list_are_substitutes(tmp_path):
    _, fills = drawn_text(tmp_path, lambda draw, line, name: draw.choice(["gina", "hans"]))
    counts = dict.fromkeys(["gina", "hans"], 1000)
    told = detected_substitutes(fills, AllowedWords(WORDS), counts, most_lines=100)
    assert (told.value, told.blind, told.places) == (1.0, 0.5, 200)
    # Without the list the rare words are suspicious, and here these are those that were kept.
    assert detected_substitutes(fills, AllowedWords(), counts).value == 0.0
    _, fills = drawn_text(tmp_path, lambda draw, line, name: draw.choice(WORDS))
    low, high = detected_substitutes(fills, AllowedWords(), {word: n for n, word in enumerate(WORDS)}).interval
    assert high - 0.15 < low < 0.5 < high, "substitutes like the other words are not told"


def test_two_fills_of_a_text_tell_all_substitutes(tmp_path):
    text, fills = drawn_text(tmp_path, lambda draw, line, name: draw.choice(WORDS[:200]))
    masked = text.masked.read_text(encoding="utf-8").splitlines()
    second = [line.replace("[MASK]", word) for line, word in zip(masked, WORDS[200:400], strict=True)]
    both = [(sentence, (copies[0], other)) for (sentence, copies), other in zip(fills, second, strict=True)]
    assert detected_substitutes(both, AllowedWords(), {}).value > 0.99
    assert detected_substitutes(fills, AllowedWords(), {}).value == 0.5


def test_what_differs_between_two_fills_was_masked(tmp_path):
    text = MaskedText.write(tmp_path, ["{anna} saw a {dog}", "{bob} left", "they slept"])
    lines = enumerate(text.masked.read_text(encoding="utf-8").splitlines(), start=1)
    sentences = [read_masked_line(line, number, merge_markers=True) for number, line in lines]
    first, second = ["Gina saw a cat", "Hans left", "they slept"], ["gina saw an owl", "ida left", "they slept"]
    told = found_by_second_fill(zip(sentences, first, second, strict=True), "has both")
    # Of three places two differ, one is equal but for its capital; of three kept words the agreed article does.
    assert (told.value, told.blind, told.places) == (pytest.approx(2 / 3), pytest.approx(1 / 3), 3)
    same = found_by_second_fill(zip(sentences, first, first, strict=True), "has it twice")
    assert (same.value, same.blind) == (0.0, 0.0)
    assert found_by_second_fill([(sentences[1], "whatever else", "ida left")], "has none").value is None


def test_consistent_surrogates_link_what_independent_draws_do_not(tmp_path):
    consistent, fills = drawn_text(tmp_path / "one", lambda draw, line, name: f"{name[::-1]}{line // 10}")
    documents = consistent.other("documents.txt", [str(line // 10) for line in range(200)])
    linked = linked_mentions(fills, consistent.sidecar, documents)
    assert (linked.value, linked.blind) == (1.0, 0.0)
    # A line has one pair at most, and only where both of its names are equal.
    within_lines = linked_mentions(fills, consistent.sidecar)
    assert within_lines.value == 1.0
    assert 40 < within_lines.places < 95

    independent, fills = drawn_text(tmp_path / "two", lambda draw, line, name: draw.choice(["gina", "hans", "ida"]))
    documents = independent.other("documents.txt", [str(line // 10) for line in range(200)])
    drawn = linked_mentions(fills, independent.sidecar, documents)
    assert drawn.interval[0] < drawn.blind < drawn.interval[1]
    assert drawn.blind == pytest.approx(1 / 3, abs=0.03)


def test_lines_that_are_no_fill_are_left_out(tmp_path):
    text = MaskedText.write(tmp_path, ["{anna} saw {anna}", "{anna} met {anna}", "they slept"])
    lines = ["gina saw gina", "whatever else", "they slept", "ida saw hans", "ida met ida", "they slept"]
    fills = list(filled_lines(text.masked, text.other("fill.txt", lines), 2))
    linked = linked_mentions(fills, text.sidecar)
    assert (linked.value, linked.places) == (1.0, 1)
    assert detected_substitutes(fills, AllowedWords(["saw", "met"]), {}).places == 2
