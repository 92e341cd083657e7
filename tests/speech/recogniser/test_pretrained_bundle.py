import json
import pickle
from pathlib import Path

import pytest
import torch

from tasks.errors import ModelError
from tasks.speech.recogniser.folder import FILES, load_bundle, load_recogniser, locate_files, save_recogniser
from tasks.speech.recogniser.recogniser import make_model
from tasks.speech.recogniser.settings import EmformerBundle, FeatureSettings, RecogniserArchitecture
from tasks.speech.recogniser.units import train_units

SMALL = RecogniserArchitecture(
    encoding=32, reduction_input=8, layers=2, heads=2, feed_forward=32, predictor_width=16, predictor_norm=True
)
FEATURES = FeatureSettings(bands=20)
SENTENCES = ["the cat sat on the mat", "a dog and a cat"] * 10


def _source(folder: Path) -> EmformerBundle:
    return EmformerBundle(kind="emformer_bundle", folder=str(folder))


@pytest.fixture
def bundle(tmp_path) -> Path:
    """The three files as torchaudio's server has them; the weights as torch.save writes a state_dict."""
    for name in FILES.values():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    torch.save(make_model(SMALL, FEATURES, 17, seed=8).state_dict(), tmp_path / FILES["weights"])
    (tmp_path / FILES["statistics"]).write_text(json.dumps({"mean": [2.0] * 20, "invstddev": [0.5] * 20}))
    (tmp_path / FILES["units"]).write_bytes(train_units(SENTENCES, 16, 10_000).models[0])
    return tmp_path


def test_a_bundle_becomes_a_recogniser_like_ours(bundle, tmp_path):
    recogniser = load_bundle(_source(bundle), SMALL, FEATURES)
    expected = make_model(SMALL, FEATURES, 17, seed=8).eval()
    features = torch.randn(40, 20, generator=torch.Generator().manual_seed(1))
    padded = torch.nn.functional.pad(features, (0, 0, 0, 8 + 4))[None]
    with torch.no_grad():
        frames, _ = expected.transcribe(padded, torch.tensor([40]))
    torch.testing.assert_close(recogniser.encode([features])[0], frames[0, :10])
    assert recogniser.feature_statistics.normalise(torch.full((1, 20), 4.0)).tolist() == [[1.0] * 20]
    assert recogniser.units.blank == 16
    save_recogniser(tmp_path / "folder", recogniser)
    assert load_recogniser(tmp_path / "folder").settings.origin == "torchaudio.pipelines.EMFORMER_RNNT_BASE_LIBRISPEECH"


def test_the_files_may_lie_flat_in_a_folder_and_missing_ones_are_all_named(bundle, tmp_path, monkeypatch):
    flat = tmp_path / "flat"
    flat.mkdir()
    for name in FILES.values():
        (bundle / name).rename(flat / Path(name).name)
    assert {path.parent for path in locate_files(_source(flat)).values()} == {flat}
    with pytest.raises(ModelError) as caught:
        locate_files(_source(tmp_path))
    assert all(Path(name).name in str(caught.value) for name in FILES.values())
    with pytest.raises(ModelError, match="does not exist"):
        locate_files(_source(tmp_path / "nowhere"))
    # Nothing is fetched unless that is allowed.
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
    with pytest.raises(ModelError, match="set download: true"):
        locate_files(EmformerBundle(kind="emformer_bundle"))


class _Harmful:
    def __reduce__(self):
        return (Path.touch, (Path("harm-done"),))


def test_weights_that_would_run_code_are_refused(bundle, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.save({"x": _Harmful()}, tmp_path / "harmful")
    for content in ((tmp_path / "harmful").read_bytes(), pickle.dumps(_Harmful())):
        (bundle / FILES["weights"]).write_bytes(content)
        with pytest.raises(ModelError, match="damaged or not the weights"):
            load_bundle(_source(bundle), SMALL, FEATURES)
    assert not (tmp_path / "harm-done").exists()


def test_files_that_do_not_fit_each_other(bundle):
    with pytest.raises(ModelError, match="not the weights of EMFORMER_RNNT_BASE_LIBRISPEECH"):
        load_bundle(_source(bundle), SMALL.model_copy(update={"layers": 3}), FEATURES)
    with pytest.raises(ModelError, match="has not 80 bands"):
        load_bundle(_source(bundle))  # the real sizes
    (bundle / FILES["statistics"]).write_text("[]")
    with pytest.raises(ModelError, match="is not the feature statistics"):
        load_bundle(_source(bundle), SMALL, FEATURES)
