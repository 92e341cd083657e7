import pytest
import torch

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
