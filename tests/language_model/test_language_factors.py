"""A language model that predicts the language of the next word, then the word."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pretrained_folder import write
from stage_commands import make_vocabulary, settings

from tasks.cli import main
from tasks.language_model.encoded_text import EncodedText, encode_text
from tasks.language_model.language_factors import LanguageFactors, TextLanguages
from tasks.language_model.ngram.backoff_model import NgramMixture
from tasks.language_model.ngram.folder import load
from tasks.language_model.opening import open_language_model
from tasks.language_model.transformer.model import load_model
from tasks.language_model.vocabulary import END_ID, START_ID

ENGLISH = ["the house was very big", "my sister went to school", "we want water and bread", "the school was open"]
SPANISH = ["mi hermana quiere agua", "la casa era muy grande", "queremos agua y pan", "la escuela estaba abierta"]
MIXED = ["my sister went to la escuela", "la casa era very big", "we want agua y pan", "queremos water and bread"]
LINES = (ENGLISH * 3 + SPANISH * 3 + MIXED) * 2
VALID = [
    "my sister was very big",
    "la hermana quiere pan",
    "the house was abierta",
    "mi casa era open",
    "la 7 casa era xyz",
]


SMALL = ["architecture.layers=1", "architecture.heads=2", "architecture.width=8", "pretraining.epochs=4"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts, a vocabulary and n-gram models: plain, factored, and the plain one by the weight 0."""
    return pretrained(tmp_path_factory.mktemp("ngram"), "ngram", [])


@pytest.fixture(scope="module")
def transformers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same of Transformers."""
    return pretrained(tmp_path_factory.mktemp("transformer"), "transformer", SMALL)


@pytest.fixture(params=["folder", "transformers"])
def either(request: pytest.FixtureRequest) -> Path:
    found: Path = request.getfixturevalue(request.param)
    return found


def pretrained(folder: Path, kind: str, small: Sequence[str]) -> Path:
    text, valid = write(folder / "text.txt", LINES), write(folder / "valid.txt", VALID)
    vocabulary = str(folder / "vocabulary.txt")
    make_vocabulary(text, vocabulary, "size=100")
    command = ["pretrain", "--input", text, "--valid", valid, "--vocabulary", vocabulary]
    codes = f"{kind}.languages.codes=[en, es]"
    for name, more in (("plain", []), ("factored", [codes]), ("weight0", [codes, f"{kind}.languages.weight=0"])):
        sets = settings(f"kind={kind}", *small, *more)
        assert main([*command, *sets, "--output", str(folder / name)]) == 0
    return folder


def read(folder: Path, name: str = "factored") -> tuple[NgramMixture, LanguageFactors, EncodedText]:
    mixture, vocabulary = load(folder / name)
    assert mixture.languages is not None
    return mixture, mixture.languages, encode_text(folder / "valid.txt", vocabulary)


def test_a_weight_of_0_is_the_plain_model_byte_for_byte(either):
    plain, other = (
        {path.name: path.read_bytes() for path in (either / name).iterdir()} for name in ("plain", "weight0")
    )
    assert plain == other


def test_text_sentences_and_next_words_agree_and_sum_to_1(either):
    """In one line that changes its language, and one with a number and an unknown word."""
    model, sentences = open_language_model(either / "factored"), [tuple(line.split()) for line in VALID]
    scores, _ = model.score_text(either / "valid.txt")
    by_sentence = model.score_sentences([sentences])[0]
    following = model.next_words()
    following.start(np.arange(len(following.vocabulary)))
    place = 0
    for words, expected in zip(sentences, by_sentence, strict=True):
        history, total = np.array([0]), 0.0
        for token in [*following.vocabulary.encode(words), END_ID]:
            found = following.scores(history)[0].double().numpy()
            assert np.exp(found).sum() == pytest.approx(1, abs=1e-5)
            assert found[token] == pytest.approx(scores.log_probability[place], abs=1e-4)
            total, place = total + float(found[token]), place + 1
            history = following.extend(history, np.array([token]))
        assert total == pytest.approx(expected, abs=1e-3)


def test_later_words_change_no_earlier_probability(either):
    """Whichever language the line goes on in."""
    model = open_language_model(either / "factored")

    def scored(*lines: str) -> np.ndarray:
        return model.score_text(lines)[0].log_probability

    english, spanish = scored("my sister went to school"), scored("my sister went la casa")
    np.testing.assert_array_equal(english[:3], spanish[:3])
    assert english[3] != spanish[3]


def test_what_classes_get_is_the_sum_over_their_words(folder):
    mixture, factors, text = read(folder)
    words = len(factors.shares)
    classes = np.random.default_rng(1).random((words, 3))
    plain = replace(mixture, languages=None)
    inside = text.tokens != START_ID
    ends = np.flatnonzero(inside)
    begins = text.offsets[np.searchsorted(text.offsets, ends, side="right") - 1]
    every = np.zeros((words, len(text.tokens)))
    for begin, end in zip(begins, ends, strict=True):
        # The context with each word of the vocabulary after it.
        lines = np.array([[*text.tokens[begin:end], word] for word in range(words)])
        offsets = np.arange(words + 1) * lines.shape[1]
        every[:, end] = np.exp(
            plain.log_probabilities(replace(text, tokens=lines.ravel(), offsets=offsets))[offsets[1:] - 1]
        )
    np.testing.assert_allclose(plain.class_probabilities(text, classes)[inside], (every.T @ classes)[inside], rtol=1e-5)


def test_the_words_to_the_left_tell_the_language(folder):
    _, factors, text = read(folder)
    english, spanish = factors.expected(text)[text.offsets[:2] + 3].tolist()
    assert english[0] > 0.8 > 0.2 > spanish[0]
    switched = factors.expected(text)[text.offsets[3:4] + 4].tolist()[0]
    assert switched[1] > 0.8  # 'open' was not seen yet


def test_exponents_are_those_that_the_validation_text_asks_for(folder):
    """All of it, or above all its words at switch points."""
    mixture, factors, text = read(folder)
    plain, (_, vocabulary) = replace(mixture, languages=None), load(folder / "plain")
    tagger = TextLanguages(["en", "es"], text, vocabulary)
    switches = tagger.switches(text)
    assert [int(switches[a:b].sum()) for a, b in zip(text.offsets, text.offsets[1:], strict=False)] == [0, 0, 1, 1, 0]
    own = plain.class_probabilities(text, factors.classes)
    gains = [
        replace(mixture, languages=factors.fitted(text, own, weight, tagger)).log_probabilities(text)
        - plain.log_probabilities(text)
        for weight in (0.0, 100.0)
    ]
    assert gains[0].sum() > max(gains[1].sum(), 0)
    assert gains[1][switches].sum() > max(gains[0][switches].sum(), 0)


def test_refusals(folder, transformers, capsys):
    codes = "languages.codes=[en, es]"
    for made, options, said in (
        (folder, ["ngram.languages.codes=[en, en]"], "two different codes"),
        (folder, ["ngram.languages.codes=[]"], "at least 2"),
        (folder, [f"ngram.{codes}", "ngram.generic_weight=0.5"], "languages.weight or --valid"),
        (transformers, [f"transformer.{codes}"], "languages.weight or --valid"),
        (transformers, [f"transformer.{codes}", "adaptation.private.epsilon=8"], "epsilon does not cover"),
    ):
        command = ["adapt", "--model", str(made / "plain"), "--input", str(made / "text.txt"), "--output", "x"]
        assert main([*command, *settings(*options)]) == 1
        assert said in capsys.readouterr().err


def test_what_a_text_said_of_languages_stays_with_its_model(transformers, capsys):
    """Adapted to another text it knows none, and where its own text should be forgotten it is refused."""
    factored, text, adapted = (str(transformers / name) for name in ("factored", "text.txt", "adapted"))
    assert main(["adapt", "--model", factored, "--input", text, "--output", adapted]) == 0
    assert load_model(factored)[0].languages is not None
    assert load_model(adapted)[0].languages is None
    models = ["--model", factored, "--base", str(transformers / "plain")]
    command = ["unlearn", "--method", "negative_preference", *models, "--forget", text]
    assert main([*command, "--retain", text, "--valid", text, "--output", "x"]) == 1
    assert "Unlearning cannot change" in capsys.readouterr().err
