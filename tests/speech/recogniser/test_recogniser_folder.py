"""The folder of a recogniser, and its units."""

import json
from dataclasses import replace

import pytest
import torch
from tiny_recogniser import random_recogniser

from tasks.errors import ModelError
from tasks.speech.recogniser.recogniser import FeatureStatistics, load_recogniser, save_recogniser
from tasks.speech.recogniser.units import WORD_BEGIN, train_language_units, train_units


def test_a_recogniser_comes_back_as_it_was_saved(tmp_path):
    statistics = FeatureStatistics(torch.linspace(0, 1, 8), torch.linspace(1, 2, 8))
    recogniser = replace(random_recogniser(), feature_statistics=statistics)
    found_hash = save_recogniser(tmp_path / "r", recogniser)
    found = load_recogniser(tmp_path / "r")
    signal = torch.randn(16_000, generator=torch.Generator().manual_seed(0)) / 10
    expected = recogniser.encode([recogniser.features(signal)])[0]
    # Weights are stored as float16.
    assert torch.allclose(found.encode([found.features(signal)])[0], expected, atol=0.02)
    assert found.units.pieces == recogniser.units.pieces
    assert (found.settings, found.hash) == (recogniser.settings, found_hash)
    assert len(expected) == 101 // 4


def test_what_is_no_recogniser(tmp_path):
    recogniser = random_recogniser()
    save_recogniser(tmp_path / "r", recogniser)
    path = tmp_path / "r" / "units.model"
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(ModelError, match=r"units\.model' is damaged"):
        load_recogniser(tmp_path / "r")
    path.unlink()
    with pytest.raises(ModelError, match=r"holds no 'units\.model'"):
        load_recogniser(tmp_path / "r")
    path.write_bytes(content)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "settings.json").write_text(json.dumps({"kind": "transformer", "format": 1}))
    for name, message in [
        ("nowhere", "does not exist"),
        (".", "give a folder that 'palimpsest train-recogniser' made"),
        ("other", "of kind 'transformer'"),
    ]:
        with pytest.raises(ModelError, match=message):
            load_recogniser(tmp_path / name)
    (tmp_path / "r" / "thesis.txt").write_text("years of work")
    with pytest.raises(ModelError, match=r"holds 'thesis\.txt'"):
        save_recogniser(tmp_path / "r", recogniser)


SENTENCES = [
    "The cat sat on the mat.",
    "A dog isn't a cat!",
    "Dogs and cats, cats and dogs",
    "the end of the tale of the dog",
] * 20


def test_units_spell_normalised_words():
    units = train_units(SENTENCES, 24)
    assert units.decode(units.encode("The  CAT -- isn't on the mat?!")) == "the cat isn't on the mat"
    ids = units.encode("the dog")
    assert "".join(units.pieces[i] for i in ids) == f"{WORD_BEGIN}the{WORD_BEGIN}dog"
    # The blank is the last id and spells nothing, like characters that were never seen.
    assert units.blank == len(units.pieces) == len(units) == 24
    assert units.decode([unit for i in ids for unit in (units.blank, i)]) == "the dog"
    assert units.decode(units.encode("\u0416")) == ""


def test_units_of_several_languages_are_in_blocks_and_know_their_language():
    texts = [
        ("the cat and the rat sat en la casa alta", ["en"] * 6 + ["es"] * 4),
        ("mi gato come la comida is a tall tale", ["es"] * 5 + ["en"] * 4),
    ]
    units = train_language_units(texts * 20, ["en", "es"], 28)
    assert len(units) == 28
    ids = units.encode("the gato sat", ["en", "es", "en"])
    assert units.decode(ids) == "the gato sat"
    english, spanish = units.encode("the", ["en"]), units.encode("gato", ["es"])
    assert (max(english) < 14 <= min(spanish), ids[: len(english)]) == (True, english)
    # A word without a language goes with the one before it.
    assert min(units.encode("gato is", ["es", None])) >= 14
