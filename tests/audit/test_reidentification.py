"""The attacker on the words behind markers: with everything to learn, with nothing, and with what each rule tells."""

import random

import numpy as np
import pytest
from made_up_words import made_up_words
from marked_text import MaskedText
from scripted_model import ScriptedModel
from tiny_masked_models import bert_of_bias, save, word_piece_tokenizer

from tasks.audit.masked_places import masked_places
from tasks.audit.reidentification import Guesser, Reader, Reading, WordList, figures_of, reidentification
from tasks.errors import CorpusError, ModelError
from tasks.filling.frequencies.word_frequencies import AllowedWords

HIDDEN = made_up_words(60)
COUNTS = [(word, 6000 // (rank + 3)) for rank, word in enumerate(HIDDEN)]
"""No two words are equally frequent among the first forty."""
CLUES = [f"clue{index}" for index in range(60)]


def drawn_text(tmp_path, number=500):
    """Lines ``clue3 said {word}``: the clue is that of the word, which is drawn by its frequency."""
    draw = random.Random(7)
    drawn = draw.choices(range(60), weights=[count for _, count in COUNTS], k=number)
    return MaskedText.write(tmp_path, [f"{CLUES[index]} said {{{HIDDEN[index]}}}" for index in drawn])


def reading(places, script, words=None):
    model = ScriptedModel([*HIDDEN, *CLUES, "said"], script)
    return Reading.of(places, Reader(model, model.candidates(), words or WordList(COUNTS, AllowedWords())))


def attacked(places, script):
    return figures_of(reading(places, script), "test")


def test_an_attacker_has_what_the_line_tells(tmp_path):
    text = drawn_text(tmp_path)
    places = masked_places(text.masked, text.sidecar, 500, 1)
    # An attacker with the answers has them all.
    figures = attacked(places, lambda words, _: {HIDDEN[CLUES.index(words[0])]: 0.99})
    assert figures["reidentified_1"].value == figures["reidentified_listed"].value == 1.0
    assert figures["median_rank"].value == 1.0
    assert figures["reidentified_1"].blind == pytest.approx(COUNTS[0][1] / sum(count for _, count in COUNTS), abs=0.06)
    # Where the line says nothing the guess is the blind one, but for ties that rounding breaks.
    taste = dict(zip(HIDDEN, np.random.default_rng(1).dirichlet(np.ones(60)).tolist(), strict=True))
    found = reading(places, lambda words, _: taste)
    assert np.abs(found.ranks - found.blind).max() <= 0.5
    # A model that says something else of each line, and nothing of the word, is no better than frequency.
    order = enumerate(random.Random(3).sample(CLUES, 60))
    noise = {clue: np.random.default_rng(n).dirichlet(np.ones(60)).tolist() for n, clue in order}
    figures = attacked(places, lambda words, _: dict(zip(HIDDEN, noise[words[0]], strict=True)))
    for name in ("reidentified_1", "reidentified_10"):
        assert figures[name].value < figures[name].blind + 0.05, name


def test_a_name_that_a_tagger_missed_near_by_is_guessed_first(tmp_path):
    counts = [("the", 1000), ("said", 500), ("Maria", 9), *((name.title(), 100) for name in HIDDEN)]
    words = WordList(counts, AllowedWords())
    lines = ["Maria said", *["nothing"] * 9, "{Maria} said", *["nothing"] * 20, "{Maria} said", "Maria said"]
    text = MaskedText.write(tmp_path, lines)
    documents = text.other("documents.txt", ["one"] * (len(lines) - 1) + ["two"])
    places = masked_places(text.masked, text.sidecar, 2, 1, documents=documents)
    assert ["maria" in place.near for place in places] == [True, False]
    found = reading(places, lambda words, _: dict.fromkeys(HIDDEN, 1 / 60), words)
    assert found.ranks[0] == 1.0
    assert found.ranks[1] == found.blind[0] == found.blind[1] > 60


def test_the_class_is_known_where_a_marker_or_the_fill_says_it_and_tells_the_form(tmp_path):
    for style, told, label in (("mask", False, "MASK"), ("class", False, "PERSON"), ("mask", True, "PERSON")):
        text = MaskedText.write(tmp_path / f"{style}{told}", ["{PERSON:anna} said"], style)
        fill = text.other("fill.txt", ["bob said"]) if told else None
        (place,) = masked_places(text.masked, text.sidecar, 1, 1, following_fill=fill)
        assert place.label == label
    counts = [("the", 1000), ("The", 100), ("Anna", 50), ("1984", 40), ("may", 100), ("May", 60)]
    words = WordList(counts, AllowedWords())
    by_label = {
        label: sorted(words.index, key=lambda word: -prior[words.index[word]])
        for label in ("PERSON", "NUMBER", "MASK")
        for prior in [words.prior(label)]
    }
    assert by_label["PERSON"][-1] == by_label["NUMBER"][0] == "1984"
    assert by_label["MASK"].index("anna") < by_label["MASK"].index("1984") < 4


def test_a_substitute_that_follows_the_masked_word_gives_its_form_away(tmp_path):
    """Surrogates have the ending of the masked word: the attacker guesses among the words that have it."""
    text = MaskedText.write(tmp_path, ["clue0 {walked} said", "clue1 {Ottawa} said", "clue2 {1987} said"])
    fill = text.other("fill.txt", ["clue0 jumped said", "clue1 Lima said", "clue2 4502 said"])
    listed = [("river", 90), ("garden", 80), ("walked", 70), ("Ottawa", 60), ("1987", 50), ("jumped", 40), ("Lima", 30)]
    words = WordList(listed, AllowedWords({"clue0"}))

    def ranks_by(fill):
        places = masked_places(text.masked, text.sidecar, 3, 1, following_fill=fill)
        model = ScriptedModel([*(word.lower() for word, _ in listed), *CLUES, "said"], lambda words, _: {})
        return Reading.of(places, Reader(model, model.candidates(), words)).ranks.tolist()

    assert ranks_by(None) == [3, 4, 5]
    assert ranks_by(fill) == [1, 1, 1]


def test_places_are_drawn_once_each_and_evenly(tmp_path):
    text = MaskedText.write(tmp_path, ["{a} {b} {c} {d}", "nothing", "{e}", "{f}"])
    seen = [place.original for seed in range(300) for place in masked_places(text.masked, text.sidecar, 2, seed)]
    assert len(seen) == 600
    for word in "abcdef":
        assert abs(seen.count(word) - 100) < 4 * (600 / 6 * 5 / 6) ** 0.5, word


def test_a_folder_attacks_and_no_figure_quotes_the_text(tmp_path):
    lines = ["the {zebulon} sat on the {mat}", "the {dog} ran", "the {tom} sat"]
    text = MaskedText.write(tmp_path, lines)
    tokenizer = word_piece_tokenizer()
    folder = save(bert_of_bias(tokenizer, {"dog": 3.0}, others=0.0), tokenizer, tmp_path / "model")
    counts = text.other("counts.tsv", ["the\t90", "dog\t30", "mat\t20", "tom\t10", "cat\t5"])
    kept = text.other("kept.txt", ["the", "sat", "on", "ran"])
    places = masked_places(text.masked, text.sidecar, 10, 1)
    figures = reidentification(places, Guesser(folder, allowed_words=kept, word_counts=counts))
    found = {name.removeprefix("reidentified_"): figure.value for name, figure in figures.items()}
    assert found == {"1": 0.25, "10": 0.75, "100": 0.75, "listed": 0.75, "median_rank": 2.5}
    assert figures["reidentified_1"].blind == 0.25
    assert "guesses 4 words off the list" in figures["reidentified_1"].attacker
    assert not any(word in figure.attacker for figure in figures.values() for word in ("zebulon", "dog", "tom"))
    assert reidentification([], Guesser(folder, allowed_words=kept, word_counts=counts))["reidentified_1"].value is None
    other = text.other("other.tsv", ["zebulon\t3"])
    with pytest.raises(ModelError) as refused:
        reidentification(places, Guesser(folder, allowed_words=kept, word_counts=other))
    longer = MaskedText.write(tmp_path / "longer", [line.replace("the {dog}", "{the} {dog}") for line in lines])
    with pytest.raises(CorpusError) as foreign:
        masked_places(text.masked, longer.sidecar, 10, 1)
    assert not any(word in f"{refused.value} {foreign.value}" for word in ("zebulon", "dog"))
