import json
import stat
from dataclasses import replace

import pytest
import torch
from tiny_recogniser import random_recogniser

from tasks.errors import ModelError
from tasks.speech.recogniser.folder import load_recogniser, save_recogniser
from tasks.speech.recogniser.recogniser import FeatureStatistics, Recogniser


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
