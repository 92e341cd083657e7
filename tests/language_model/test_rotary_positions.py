"""Rotary positions, those that know where a line changes its language, and state fusion."""

import numpy as np
import pytest
import torch
from stage_commands import make_vocabulary

from tasks.cli import main
from tasks.language_model.language_factors import LanguageFactors
from tasks.language_model.opening import open_language_model
from tasks.language_model.settings import ArchitectureSettings
from tasks.language_model.transformer.languages_and_positions import RotaryPositions
from tasks.language_model.transformer.model import TransformerLanguageModel, load_model
from tasks.language_model.vocabulary import END_ID, START_ID

KINDS = ["rotary", "switching", "switching_pairs", "learned"]
"""The last one with state fusion."""
FIRST, SECOND = [10, 11, 12], [20, 21, 22]
"""Words of two languages, by their ids."""


def model_of(kind: str) -> TransformerLanguageModel:
    languages = ["en", "es"] if kind != "rotary" else []
    architecture = ArchitectureSettings(
        layers=2, heads=2, width=16, maximum_tokens=12, positions=kind, languages=languages
    )
    model = TransformerLanguageModel(architecture, 30)
    model.initialise(3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.2 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(5))
    if languages:
        shares = np.zeros((30, 2))
        shares[10:20, 0] = shares[20:, 1] = 1
        steps = np.tile([[0.9, 0.1], [0.1, 0.9]], (30, 1, 1))
        model.know(LanguageFactors(("en", "es"), shares, steps, np.array([0.5, 0.5])))
    return model.eval()


def positions(model: TransformerLanguageModel) -> RotaryPositions:
    assert isinstance(model.positions, RotaryPositions)
    return model.positions


@pytest.mark.parametrize("kind", KINDS)
def test_later_words_change_no_earlier_score(kind):
    """Whichever language they are of, so that a later switch is not known before."""
    model = model_of(kind)
    line = torch.tensor([[START_ID, *FIRST, *SECOND, *FIRST]])
    with torch.no_grad():
        scores = model.logits(line)
        for place in range(2, line.shape[1]):
            changed = line.clone()
            changed[0, place:] = torch.where(line[0, place:] >= 20, line[0, place:] - 10, line[0, place:] + 10)
            found = model.logits(changed)
            torch.testing.assert_close(found[0, :place], scores[0, :place])
            assert not torch.allclose(found[0, place:], scores[0, place:])


def test_places_by_hand():
    """Two stretches and a word without a language, which belongs to the stretch that it is in."""
    line = torch.tensor([[START_ID, 10, 11, 20, 5, 21, 12, END_ID]])
    switching, pairs = positions(model_of("switching")), positions(model_of("switching_pairs"))
    assert switching.follow(line)[0][0, 1:].argmax(dim=1).tolist() == [0, 0, 1, 1, 1, 0, 0]
    assert switching.places(line).tolist() == [[0, 1, 2, -3, -4, -5, 6, 7]]
    with torch.no_grad():
        pairs.pairs.copy_(torch.tensor([1.0, 3.0, 0.5, 2.0]))  # en-en, en-es, es-en, es-es
    assert pairs.places(line).tolist() == [[0, 1, 2, 5, 7, 9, 9.5, 10.5]]


@pytest.mark.parametrize("kind", ["switching_pairs", "learned"])
def test_commands_train_it_and_all_that_it_is_asked_agrees(tmp_path, kind):
    lines = ["the house was very big", "la casa era muy grande", "my sister quiere agua", "queremos agua and bread"] * 4
    (tmp_path / "text.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    text, vocabulary, pretrained, adapted = (str(tmp_path / name) for name in ("text.txt", "words", "one", "two"))
    sizes = {"layers": 1, "heads": 2, "width": 8, "maximum_tokens": 8, "positions": kind}
    sizes |= {"languages": "[en, es]"} if kind != "rotary" else {}
    sets = [part for name, value in sizes.items() for part in ("--set", f"architecture.{name}={value}")]
    make_vocabulary(text, vocabulary, "size=60")
    sets += ["--valid", text, "--set", "pretraining.patience=1"]
    assert main(["pretrain", "--input", text, "--vocabulary", vocabulary, "--output", pretrained, *sets]) == 0
    assert main(["adapt", "--model", pretrained, "--input", text, "--output", adapted]) == 0
    before, after = (load_model(folder)[0].state_dict() for folder in (pretrained, adapted))
    assert not torch.equal(before["embedding.weight"], after["embedding.weight"])
    if kind != "rotary":
        part, learned = ("state", "weight") if kind == "learned" else ("positions", "pairs")
        assert torch.equal(before[f"{part}.shares"], after[f"{part}.shares"])
        assert not torch.equal(before[f"{part}.{learned}"], after[f"{part}.{learned}"])
    model, sentences = open_language_model(adapted), [tuple(line.split()) for line in lines[:4]]
    values, _ = model.score_text(text)
    by_sentence = model.score_sentences([sentences])[0]
    following = model.next_words()
    following.start(np.arange(len(following.vocabulary)))
    for number, words in enumerate(sentences):
        history, total = np.array([0]), 0.0
        for token in [*following.vocabulary.encode(words), END_ID]:
            total += float(following.scores(history).log_softmax(1)[0, token])
            history = following.extend(history, np.array([token]))
        assert total == pytest.approx(by_sentence[number], abs=1e-3)
    ends = np.cumsum([len(words) + 1 for words in sentences])
    np.testing.assert_allclose(np.add.reduceat(values.log_probability[: ends[-1]], [0, *ends[:-1]]), by_sentence)
    assert main(["adapt", "--model", pretrained, "--input", text, "--output", adapted,
                 "--set", "adaptation.private.epsilon=8"]) == 1  # fmt: skip


def test_refusals():
    for wrong, said in (
        ({"positions": "switching"}, "need languages"),
        ({"positions": "rotary", "context": "packed"}, "need the context 'sentence'"),
        ({"positions": "rotary", "width": 12, "heads": 4}, "even number of units"),
    ):
        with pytest.raises(ValueError, match=said):
            ArchitectureSettings(**wrong)
