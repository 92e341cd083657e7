import pytest
import torch

from tasks.speech.recogniser.network import greedy_decode
from tasks.speech.recogniser.recogniser import log_mel, make_model, transcribe
from tasks.speech.recogniser.settings import FeatureSettings, RecogniserArchitecture

FEATURES = FeatureSettings(bands=20)
SMALL = RecogniserArchitecture(
    encoding=32, reduction_input=8, layers=2, heads=2, feed_forward=32, predictor_width=16, left_context_frames=8
)
ROUNDING = 1e-5


@pytest.fixture(scope="module")
def model():
    return make_model(SMALL, FEATURES, 17, seed=1).eval()


def test_an_utterance_is_encoded_the_same_whatever_stands_beside_it(model):
    for longest in [64, 77, 150]:
        for frames in [3, 8, 11, 16, 20, 27, 37]:
            generator = torch.Generator().manual_seed(3)
            short, long = torch.randn(frames, 20, generator=generator), torch.randn(longest, 20, generator=generator)
            alone, together = transcribe(model, [short], SMALL)[0], transcribe(model, [short, long], SMALL)[0]
            torch.testing.assert_close(alone, together, rtol=0, atol=ROUNDING)


def _decode_one(model, blank: int, encoded: torch.Tensor) -> list[int]:
    """The same, utterance by utterance and step by step."""
    one = torch.tensor([1], dtype=torch.int32)
    predicted, _, state = model.predict(torch.tensor([[blank]]), one, None)
    found: list[int] = []
    for frame in encoded:
        for _ in range(10):
            scores, _, _ = model.join(frame[None, None], one, predicted, one)
            best = int(scores.argmax())
            if best == blank:
                break
            found.append(best)
            predicted, _, state = model.predict(torch.tensor([[best]]), one, state)
    return found


@torch.no_grad()
def test_greedy_decoding_of_a_batch_equals_one_utterance_after_the_other():
    model = make_model(SMALL, FEATURES, 17, seed=2).eval()
    # New weights hardly ever emit the blank: make it the best in about every second step.
    model.joiner.linear.weight.mul_(5)
    model.joiner.linear.bias[16] = 2.0
    generator = torch.Generator().manual_seed(4)
    encoded = [torch.randn(frames, 32, generator=generator) for frames in (12, 0, 3, 7)]
    found = greedy_decode(model, 16, encoded)
    assert found == [_decode_one(model, 16, frames) for frames in encoded]
    assert [len(units) > 0 for units in found] == [True, False, True, True]


def test_features_are_those_of_torchaudios_pipeline():
    import torchaudio
    from torchaudio.pipelines import rnnt_pipeline

    noise = torch.randn(16_000, generator=torch.Generator().manual_seed(0)).clamp(-1, 1)
    signal = torch.linspace(0, 0.5, 16_000) * noise * torch.logspace(-6, 0, 16_000)  # from below the line to far above
    spectrogram = torchaudio.transforms.MelSpectrogram(sample_rate=16_000, n_fft=400, n_mels=80, hop_length=160)
    expected = rnnt_pipeline._piecewise_linear_log(spectrogram(signal).transpose(1, 0) * rnnt_pipeline._gain)
    found = log_mel(signal, FeatureSettings(bands=80))
    assert found.shape == (101, 80)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
