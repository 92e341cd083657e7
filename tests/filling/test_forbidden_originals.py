import json
import math
from collections import Counter

import numpy as np
import pytest
from pydantic import TypeAdapter
from stage_commands import settings
from tiny_masked_models import bert_of_bias, save, word_piece_tokenizer

from tasks.cli import main
from tasks.corpora.sidecar import MaskedSpan, write_sidecar
from tasks.errors import CorpusError, ModelError
from tasks.filling.choice import ChoiceWithoutOriginals, ForbiddenOriginals, held_down, shares_of_forms, with_spans
from tasks.filling.filled_corpus import CorpusFiller, Shard
from tasks.filling.frequencies.word_frequencies import KeptWords, WordFrequencies
from tasks.filling.marker_randomness import MarkerRandomness, Place
from tasks.filling.masked_sentence import Casing, read_masked_line
from tasks.filling.methods import AnyMethod
from tasks.filling.methods.sample import DrawOffList
from tasks.filling.methods.unigram import UnigramFiller

DRAWS = 3000
FOUR_SIGMA = 4.0
"""A right sampler misses this tolerance once in 16,000 comparisons; seeds are fixed."""

WORDS = ["the", "cat", "Cat", "dog", "tom"]
SCORES = [5.0, 4.0, 3.0, 2.0, 1.0]


def scores(count):
    return np.array([SCORES] * count, dtype=np.float32)


def places(count):
    return [Place(line, 0) for line in range(1, count + 1)]


def sentences(count, *originals):
    line = " ".join(["[MASK]"] * len(originals))
    spans = [MaskedSpan(0, 1, "MASK", "list", original, marker) for marker, original in enumerate(originals)]
    return [with_spans(read_masked_line(line, number, merge_markers=True), spans) for number in range(1, count + 1)]


def without(choice, count, *originals):
    forbidden = ForbiddenOriginals()
    forbidden.take(sentences(count, *originals))
    return ChoiceWithoutOriginals(choice, WORDS, forbidden), forbidden


def draw(off_list=None, temperature=1.0):
    return DrawOffList(temperature, np.ones(5, dtype=bool) if off_list is None else off_list, MarkerRandomness(1))


def near(count, probability, draws=DRAWS):
    return abs(count - probability * draws) <= FOUR_SIGMA * math.sqrt(draws * probability * (1 - probability))


def test_no_original_is_written_in_whatever_case():
    choice, _ = without(draw(), 200, "CAT", "The")
    chosen = choice.choose(scores(200), places(200))
    assert set(chosen.candidates.tolist()) <= {3, 4}
    assert not chosen.fallbacks.any()


HELD_DOWN = {0: 0.5, 1: 0.25, 2: 0.1655, 3: 0.0621, 4: 0.0224}
"""By hand: of the softmax .636 .234 .086 .032 .012 'the' is held at a half, and one form of 'cat' at a quarter."""


def test_what_is_left_is_drawn_in_the_proportions_of_a_fill_without_certain_words():
    for original in ["the", "cat", "dog", "tom", "unheard-of"]:
        choice, _ = without(draw(), DRAWS, original)
        counts = Counter(choice.choose(scores(DRAWS), places(DRAWS)).candidates.tolist())
        left = {index: p for index, p in HELD_DOWN.items() if WORDS[index].lower() != original}
        assert set(counts) == set(left)
        assert all(near(counts[index], p / sum(left.values())) for index, p in left.items())


def test_a_fill_is_at_most_twice_as_probable_with_other_words_masked():
    """The draw's own probabilities, for each word in turn as the only original of a place with so many markers."""
    for merged in [1, 2]:
        for temperature in [0.05, 0.5, 1.0, 3.0]:
            places_of = {}
            for original in ["the", "cat", "dog", "tom"]:
                words = [*WORDS, *(f"word{number}" for number in range(8))]
                forbidden = ForbiddenOriginals()
                forbidden.take(sentences(1, original, *["nothing"] * (merged - 1)))
                (place,) = places(1)
                probabilities = held_down(
                    np.exp(np.array([*SCORES, *[0.5] * 8]) / temperature),
                    forbidden.most(place) * shares_of_forms(words),
                )
                mine = np.array([word.lower() == original for word in words])
                assert probabilities[mine].sum() <= 1 / (2 * merged) + 1e-9
                assert probabilities.sum() == pytest.approx(1)
                places_of[original] = np.where(mine, 0, probabilities) / probabilities[~mine].sum()
            for first in places_of.values():
                for second in places_of.values():
                    both = (first > 0) & (second > 0)
                    assert (first[both] / second[both]).max() <= 2 + 1e-9


def test_what_mattered_is_counted():
    choice, forbidden = without(draw(), DRAWS, "the")
    choice.choose(scores(DRAWS), places(DRAWS))
    assert forbidden.counts["forbidden_places"] == DRAWS
    assert near(forbidden.counts["forbidden_restorations"], 0.5)
    choice, forbidden = without(draw(), 2, "unheard-of")
    choice.choose(scores(2), places(2))
    assert forbidden.counts == {"forbidden_places": 0, "forbidden_restorations": 0}


def test_a_draw_that_was_none_of_the_originals_stays():
    choice, forbidden = without(draw(), 200, "dog")
    free, _ = without(draw(), 200, "unheard-of")
    free = free.choose(scores(200), places(200)).candidates
    held = choice.choose(scores(200), places(200)).candidates
    changed = free != held
    assert (free[changed] == 3).all()
    assert changed.sum() == (free == 3).sum() == forbidden.counts["forbidden_restorations"] > 0


def test_one_word_off_the_list_hides_nothing_so_all_words_are_drawn_from_whatever_was_masked():
    """Were tom written wherever it was not masked, the others would say that it was."""
    for original in ["tom", "dog", "unheard-of"]:
        choice, _ = without(draw(np.array([False, False, False, False, True])), 200, original)
        chosen = choice.choose(scores(200), places(200))
        assert chosen.fallbacks.all()
        assert (
            {0, 1, 2}
            <= set(chosen.candidates.tolist())
            <= {0, 1, 2, 3, 4} - {WORDS.index(original) if original in WORDS else 9}
        )


def test_too_few_words_to_hide_one_are_an_error():
    choice, _ = without(draw(), 1, "the")
    with pytest.raises(ModelError, match="line 1: there are too few words that this filler may write to hide which"):
        choice.choose(scores(1), places(1), [np.array([1, 2, 3, 4])])
    certain = np.array([[0.0, -9e5, -9e5, -9e5, -9e5]], dtype=np.float32)
    with pytest.raises(ModelError, match="leave forbid_original out, or raise the temperature"):
        choice.choose(certain, places(1))


def test_what_else_is_forbidden_is_so_too():
    for other in [np.array([0, 3]), np.array([True, False, False, True, False])]:
        choice, _ = without(draw(), 1, "cat")
        assert choice.choose(scores(1), places(1), [other]).candidates.tolist() == [4]


def test_capitals_do_not_make_the_original_of_another_word():
    """A capital dotless ı is an I: SINIF is also what the capitals of another word are."""
    frequencies = WordFrequencies.of([("sınıf", 1)])
    forbidden = ForbiddenOriginals()
    filler = UnigramFiller({None: frequencies}, MarkerRandomness(5), forbidden)
    corpus = CorpusFiller(filler, Casing({}, filler_is_cased=True), KeptWords(), True, None, forbidden)
    shard = Shard(0, 1, ["IT WAS [MASK]"], [[MaskedSpan(7, 12, "MASK", "list", "SINIF", 0)]])
    assert corpus.fill_shard(shard).lines == ["IT WAS sınıf"]


def test_unigram_holds_every_word_down_where_markers_were_merged():
    """Decision 0038 for a marker of two words: no word is more than twice as probable with others masked there."""
    for masked in [("paris", "london"), ("rome", "oslo")]:
        frequencies = WordFrequencies.of([("vienna", 45), ("paris", 45), ("london", 5), ("rome", 5), ("oslo", 5)])
        found = {}
        for originals in (masked, ("nothing", "else")):
            forbidden = ForbiddenOriginals()
            marked = sentences(DRAWS, *originals)
            forbidden.take(marked)
            filler = UnigramFiller({None: frequencies}, MarkerRandomness(5), forbidden)
            found[originals] = Counter(fill.word for fills in filler.fill(marked, lambda slots: None) for fill in fills)
        with_them, without_them = found.values()
        assert not set(with_them) & set(masked)
        # By hand: vienna and paris are held at a quarter, the others have a sixth each.
        assert near(without_them["vienna"], 1 / 4)
        for word, count in with_them.items():
            assert count / without_them[word] <= 2 * (1 + 4 / math.sqrt(without_them[word]))


def test_unigram_draws_from_the_other_words():
    frequencies = WordFrequencies.of([("Paris", 60), ("paris", 20), ("mat", 15), ("tom", 5)])
    forbidden = ForbiddenOriginals()
    off_list = KeptWords().off_list(frequencies.words)
    filler = UnigramFiller({None: frequencies.shared(off_list)}, MarkerRandomness(5), forbidden)
    lines = sentences(DRAWS, "PARIS")
    forbidden.take(lines)
    words = Counter(fills[0].word for fills in filler.fill(lines, lambda _: None))
    assert set(words) == {"mat", "tom"}
    assert near(words["mat"], 0.75)
    assert forbidden.counts["forbidden_places"] == DRAWS
    # Paris is 80 of 100, in two forms, and held at what all others have together.
    assert near(forbidden.counts["forbidden_restorations"], 0.5)
    forbidden.take(sentences(DRAWS, "tom"))
    words = Counter(filler.draw(place).word for place in places(DRAWS))
    assert near(words["Paris"], 15 / 35)
    assert near(words["paris"], 5 / 35)
    lines = sentences(1, "paris", "mat", "tom")
    forbidden.take(lines)
    with pytest.raises(CorpusError, match="line 1: every word that may be drawn is forbidden"):
        filler.fill(lines, lambda _: None)


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "masked.txt").write_text("the [MASK] sat\n[MASK] [MASK] ran\nthe [MASK]\n", encoding="utf-8")
    (tmp_path / "word_counts.tsv").write_text("dog\t6\nCat\t3\nParis\t1\nmat\t1\n", encoding="utf-8")
    spans = [
        [MaskedSpan(4, 7, "MASK", "allow_list", "Cat", 0)],
        [MaskedSpan(0, 3, "MASK", "allow_list", "DOG", 0), MaskedSpan(4, 9, "MASK", "allow_list", "cat", 1)],
        [MaskedSpan(4, 7, "MASK", "allow_list", "mat", 0)],
    ]
    write_sidecar(tmp_path / "sidecar.jsonl", spans)
    return tmp_path


def fill(corpus, *options):
    files = {"input": "masked.txt", "output": "filled.txt", "report": "report.json"}
    return main(["fill", *(f"--{name}={corpus / file}" for name, file in files.items()), *map(str, options)])


def test_a_fill_with_a_model(corpus, tmp_path_factory):
    tokenizer = word_piece_tokenizer()
    model = bert_of_bias(tokenizer, {"cat": 3.0, "dog": 2.0, "paris": 1.0}, others=-30.0)
    filler = ["--filler", save(model, tokenizer, tmp_path_factory.mktemp("fillers") / "tiny"), "--method", "sample"]
    options = [*filler, "--sidecar", corpus / "sidecar.jsonl"]
    # At so low a temperature the best word is drawn, so every word can be foretold.
    assert fill(corpus, *options, *settings("temperature=0.01")) == 0
    assert (corpus / "filled.txt").read_text().splitlines() == ["the cat sat", "Cat ran", "the cat"]
    seen = set()
    for seed in range(12):
        assert fill(corpus, *options, *settings("forbid_original=true", "temperature=0.1"), "--seed", seed) == 0
        first, second, third = (corpus / "filled.txt").read_text().splitlines()
        assert first == "the dog sat"
        assert second not in ("Cat ran", "Dog ran")
        seen.add(third)
        # Three, rounded by chance.
        assert json.loads((corpus / "report.json").read_text())["measured"]["forbidden_places"] in (0, 5)
    # The likeliest word is none that must stand there.
    assert seen == {"the cat", "the dog"}


def test_who_knows_the_likeliest_word_does_not_learn_from_its_absence_that_it_was_masked(tmp_path, tmp_path_factory):
    """A filler that is certain of cat; cat is masked in every second line. Where another word stands, cat was masked in
    two of three: without a limit it would be all of them."""
    tokenizer = word_piece_tokenizer()
    model = bert_of_bias(tokenizer, {"cat": 12.0, "dog": 0.0, "paris": 0.0, "tom": 0.0}, others=-30.0)
    filler = save(model, tokenizer, tmp_path_factory.mktemp("fillers") / "certain")
    number = 1_000
    originals = ["cat" if line % 2 else "mat" for line in range(number)]
    (tmp_path / "masked.txt").write_text("the [MASK] sat\n" * number, encoding="utf-8")
    spans = [[MaskedSpan(4, 7, "MASK", "allow_list", original, 0)] for original in originals]
    write_sidecar(tmp_path / "sidecar.jsonl", spans)
    options = ["--method", "sample", "--filler", filler, "--sidecar", tmp_path / "sidecar.jsonl"]
    options += settings("forbid_original=true")
    assert fill(tmp_path, *options) == 0
    words = [line.split()[1] for line in (tmp_path / "filled.txt").read_text(encoding="utf-8").splitlines()]
    claims = [original == "cat" for word, original in zip(words, originals, strict=True) if word != "cat"]
    assert near(sum(claims), 2 / 3, len(claims))


def test_who_fills_again_without_the_sidecar_learns_no_masked_word(tmp_path):
    """Without a secret the two fills differ at places with an original alone, and there the second writes it."""
    number = 2_000
    originals = ["dog" if line % 2 else "cat" for line in range(number)]
    (tmp_path / "masked.txt").write_text("the [MASK] sat\n" * number, encoding="utf-8")
    (tmp_path / "word_counts.tsv").write_text("dog\t6\ncat\t3\nparis\t1\n", encoding="utf-8")
    spans = [[MaskedSpan(4, 7, "MASK", "allow_list", original, 0)] for original in originals]
    write_sidecar(tmp_path / "sidecar.jsonl", spans)
    options = ["--method", "unigram", "--word-counts", tmp_path / "word_counts.tsv", "--seed", 1]

    def words():
        return [line.split()[1] for line in (tmp_path / "filled.txt").read_text(encoding="utf-8").splitlines()]

    assert fill(tmp_path, *options, "--sidecar", tmp_path / "sidecar.jsonl", *settings("forbid_original=true")) == 0
    published = words()
    assert not any(map(str.__eq__, published, originals))
    assert fill(tmp_path, *options) == 0
    guesses = [
        guess == original for mine, guess, original in zip(published, words(), originals, strict=True) if mine != guess
    ]
    # Dogs are 6 and cats 3 of 10 draws, and the published word rules itself out: whoever guesses by these frequencies
    # alone is right more often than not, and never certain.
    assert 0.4 < sum(guesses) / len(guesses) < 0.9
    assert fill(tmp_path, *options, "--sidecar", tmp_path / "sidecar.jsonl", *settings("forbid_original=true")) == 0
    assert words() == published


def test_methods_that_cannot_hide_what_they_avoid_say_so():
    for values, says in [
        ({"kind": "top_1"}, "top_1 takes the best one"),
        ({"kind": "top_k"}, "top_k takes the one of the k best that is off the list where there is no second"),
        ({"kind": "free"}, "free writes the model's best sentence"),
        ({"kind": "surrogate"}, "several surrogates that are never the original tell it"),
    ]:
        check = TypeAdapter(AnyMethod).validate_python
        assert check({**values, "forbid_original": False}).forbid_original is False
        with pytest.raises(ValueError, match="leave forbid_original out") as error:
            check({**values, "forbid_original": True})
        assert says in str(error.value)
