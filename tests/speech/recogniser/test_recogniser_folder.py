import json
import stat
from dataclasses import replace

import pytest
import torch
from tiny_recogniser import ARCHITECTURE, FEATURES, random_recogniser

from tasks.errors import ModelError
from tasks.speech.recogniser.folder import load_recogniser, save_recogniser
from tasks.speech.recogniser.recogniser import FeatureStatistics, Recogniser, make_model
from tasks.speech.recogniser.units import train_language_units


@pytest.fixture
def recogniser() -> Recogniser:
    statistics = FeatureStatistics(torch.linspace(0, 1, 8), torch.linspace(1, 2, 8))
    return replace(random_recogniser(), feature_statistics=statistics)


def test_a_recogniser_comes_back_as_it_was_saved(tmp_path, recogniser):
    found_hash = save_recogniser(tmp_path / "r", recogniser)
    found = load_recogniser(tmp_path / "r")
    signal = torch.randn(16_000, generator=torch.Generator().manual_seed(0)) / 10
    expected = recogniser.encode([recogniser.features(signal)])[0]
    assert torch.equal(found.encode([found.features(signal)])[0], expected)
    assert found.units.pieces == recogniser.units.pieces
    assert found.settings == recogniser.settings
    assert found.hash == found_hash
    assert found.frame_seconds == 0.04
    assert len(expected) == 101 // 4
    assert stat.S_IMODE((tmp_path / "r").stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "r").iterdir()} == {0o600}


def test_half_precision_halves_the_file_and_hardly_moves_the_weights(tmp_path, recogniser):
    save_recogniser(tmp_path / "whole", recogniser)
    save_recogniser(tmp_path / "half", recogniser, store="float16")
    sizes = [(tmp_path / name / "model.safetensors").stat().st_size for name in ("whole", "half")]
    assert sizes[1] < 0.6 * sizes[0]
    weight = load_recogniser(tmp_path / "half").model.joiner.linear.weight
    assert weight.dtype == torch.float32
    torch.testing.assert_close(weight, recogniser.model.joiner.linear.weight, rtol=1e-3, atol=1e-4)


def test_what_is_no_recogniser(tmp_path, recogniser):
    save_recogniser(tmp_path / "r", recogniser)
    for name in ("model.safetensors", "units.model", "statistics.json"):
        path = tmp_path / "r" / name
        content = path.read_bytes()
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        with pytest.raises(ModelError, match=f"{name}' is damaged"):
            load_recogniser(tmp_path / "r")
        path.unlink()
        with pytest.raises(ModelError, match=f"holds no '{name}'"):
            load_recogniser(tmp_path / "r")
        path.write_bytes(content)
    with pytest.raises(ModelError, match="does not exist"):
        load_recogniser(tmp_path / "nowhere")
    with pytest.raises(ModelError, match="give a folder that 'palimpsest train-recogniser' made"):
        load_recogniser(tmp_path)
    (tmp_path / "settings.json").write_text(json.dumps({"kind": "transformer", "format": 1}))
    with pytest.raises(ModelError, match="of kind 'transformer'"):
        load_recogniser(tmp_path)
    (tmp_path / "r" / "thesis.txt").write_text("years of work")
    with pytest.raises(ModelError, match=r"holds 'thesis\.txt'"):
        save_recogniser(tmp_path / "r", recogniser)


def test_units_of_several_languages_come_back_in_their_blocks(tmp_path, recogniser):
    english, spanish = "the cat and the rat sat is a tall tale", "en la casa alta mi gato come la comida"
    texts = [(f"{english} {spanish}", ["en"] * len(english.split()) + ["es"] * len(spanish.split()))] * 20
    units = train_language_units(texts, ["en", "es"], 32, 1000)
    model = make_model(ARCHITECTURE, FEATURES, len(units) + 1, seed=3).eval()
    description = recogniser.settings.model_copy(update={"unit_languages": ["en", "es"]})
    made = Recogniser(model, units, recogniser.feature_statistics, description)
    save_recogniser(tmp_path / "r", made)
    found = load_recogniser(tmp_path / "r").units
    assert (found.languages, found.pieces, found.hash) == (units.languages, units.pieces, units.hash)
