import pytest
import torch
from safetensors.torch import save_file

from tasks.errors import SpeechError
from tasks.speech.recogniser.encoded_speech import read_encoded, write_encoded

FRAMES = {"b-2": torch.tensor([[0.5, -1.0], [2.0, 0.25]]), "a-1": torch.zeros(0, 2)}
SECONDS = {"b-2": 0.1, "a-1": 0.01}


def _write(path, frames=FRAMES, **options) -> None:
    write_encoded(
        path, frames, recogniser_hash="abc" * 20, seconds=SECONDS, frame_seconds=0.04, synthetic=True, **options
    )


@pytest.mark.parametrize("store", ["float16", "float32"])
def test_frames_come_back_in_the_order_given(tmp_path, store):
    _write(tmp_path / "x", store=store)
    found = read_encoded(tmp_path / "x")
    assert found.utterance_ids == ["b-2", "a-1"]
    assert torch.equal(found.frames("b-2"), FRAMES["b-2"])  # these numbers are whole in half precision too
    assert found.frames("a-1").shape == (0, 2)
    assert found.frames("b-2").dtype == torch.float32
    assert found.seconds == SECONDS
    assert found.total_seconds == pytest.approx(0.11)
    assert (found.frame_seconds, found.synthetic) == (0.04, True)
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o600


def test_another_recogniser_is_refused(tmp_path):
    _write(tmp_path / "x")
    found = read_encoded(tmp_path / "x")
    found.check_recogniser("abc" * 20)
    with pytest.raises(SpeechError, match="encoded by the recogniser abcabcabcabc, and this one is ffffffffffff"):
        found.check_recogniser("f" * 60)


def test_files_that_are_something_else(tmp_path):
    with pytest.raises(SpeechError, match="does not exist"):
        read_encoded(tmp_path / "nowhere")
    (tmp_path / "text").write_text("no tensors")
    with pytest.raises(SpeechError, match="is damaged"):
        read_encoded(tmp_path / "text")
    save_file({"weight": torch.zeros(1)}, tmp_path / "model")
    with pytest.raises(SpeechError, match="is no encoded speech"):
        read_encoded(tmp_path / "model")
    _write(tmp_path / "x")
    (tmp_path / "x").write_bytes((tmp_path / "x").read_bytes()[:-3])
    with pytest.raises(SpeechError, match="is damaged"):
        read_encoded(tmp_path / "x")


def test_frames_that_half_precision_cannot_hold(tmp_path):
    with pytest.raises(SpeechError, match="'b-2' is not finite as float16"):
        _write(tmp_path / "x", {"b-2": torch.full((1, 2), 1e6)})
    assert not (tmp_path / "x").exists()
