"""A language model that predicts the language of the next word, then the word."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from pretrained_folder import write
from stage_commands import make_vocabulary, settings

from tasks.cli import main
from tasks.language_model.opening import open_language_model
from tasks.language_model.vocabulary import END_ID

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
