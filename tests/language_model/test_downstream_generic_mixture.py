"""Generic text mixed into an adaptation: as much as is asked for, drawn by seed, and no more."""

from pathlib import Path

import numpy as np
import pytest
from pretrained_folder import SMALL, write
from stage_commands import make_vocabulary, settings

from tasks.cli import main
from tasks.errors import CorpusError
from tasks.language_model.generic_mixture import mix_generic_text, sample_sentences
from tasks.records.stage_report import read_report


@pytest.fixture
def generic(tmp_path: Path) -> Path:
    """300 sentences of three words and some lines without a word."""
    path = tmp_path / "generic.txt"
    path.write_text("".join(f"c d {'a' if index % 2 else 'b'}\n\n" for index in range(300)), encoding="utf-8")
    return path


def test_the_share_is_of_all_targets(encoded, vocabulary, generic):
    text = encoded(["a b", "a [MASK] b b"] * 30, "ignore")  # 3 + 4 targets: the marker is none
    mixed = mix_generic_text(text, generic, vocabulary, 0.4, seed=1)
    assert mixed.generic_targets == 140  # 140 / (210 + 140)
    assert mixed.generic_sentences == 35
    assert int(mixed.text.is_target().sum()) == 350
    assert mixed.text.sentences == 95
    own = len(text.tokens)
    assert np.array_equal(mixed.text.tokens[:own], text.tokens)
    assert mixed.text.offsets.tolist()[60:] == [own + 5 * index for index in range(36)]
    words = {vocabulary.tokens[token] for token in mixed.text.tokens[own:]}
    assert words == {"<s>", "c", "d", "a", "b", "</s>"}


def test_the_seed_says_which_sentences(generic, vocabulary):
    def lines(seed: int) -> list[int]:
        return [number for number, _ in sample_sentences(generic, 134, vocabulary, seed)]

    assert lines(1) == lines(1) == sorted(lines(1))
    assert lines(1) != lines(2)
    assert len(lines(1)) == 34  # of four targets each: the first number that reaches 134
    assert all(number % 2 for number in lines(1))  # every other line is empty
    assert min(lines(1)) < 100 < 500 < max(lines(1))
    with pytest.raises(CorpusError, match="has 1200 targets, and generic_share asks for 1201"):
        sample_sentences(generic, 1201, vocabulary, seed=1)


def test_every_sentence_is_as_likely(tmp_path, vocabulary):
    path = tmp_path / "generic.txt"
    path.write_text("a\n" * 50, encoding="utf-8")
    drawn = np.zeros(50)
    for seed in range(400):
        for number, _ in sample_sentences(path, 20, vocabulary, seed):
            drawn[number - 1] += 1
    assert drawn.sum() == 4000
    assert 45 < drawn.min() <= drawn.max() < 120  # 80 expected, standard deviation 8


def test_a_transformer_is_adapted_to_both(tmp_path, generic, capsys):
    vocabulary, report = (str(tmp_path / name) for name in ("vocabulary.txt", "report.json"))
    text = write(tmp_path / "text.txt", ["a b", "a b b b"] * 30)  # 240 targets
    make_vocabulary(generic, vocabulary, "size=30")
    command = ["pretrain", "--input", str(generic), "--vocabulary", vocabulary, *SMALL]
    assert main([*command, *settings("pretraining.epochs=0.1"), "--output", str(tmp_path / "pretrained")]) == 0
    command = ["adapt", "--model", str(tmp_path / "pretrained"), "--input", text, "--output", str(tmp_path / "adapted")]
    options = [*settings("adaptation.generic_share=0.25", "adaptation.epochs=2"), "--threads", "1", "--report", report]
    assert main([*command, *options, "--generic-text", str(generic)]) == 0
    document = read_report(report)
    measured = document["measured"]
    assert (measured["generic_targets"], measured["generic_sentences"]) == (80, 20)
    assert measured["tokens"] == 2 * (240 + 80)
    assert (measured["sentences"], measured["words"]) == (60, 180)  # of its own text
    assert str(generic) in document["inputs"]
    capsys.readouterr()
    assert main([*command, *options]) == 1
    assert "name it with --generic-text" in capsys.readouterr().err
