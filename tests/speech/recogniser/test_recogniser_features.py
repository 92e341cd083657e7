import math

import numpy as np
import torch

from tasks.speech.recogniser.recogniser import feature_statistics, log_mel
from tasks.speech.recogniser.settings import AugmentationSettings, FeatureSettings
from tasks.speech.recogniser.speech_batches import hide_parts


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


def test_statistics_by_hand():
    statistics = feature_statistics([torch.tensor([[1.0, 10.0], [3.0, 10.0]]), torch.tensor([[5.0, 40.0]])])
    assert statistics.mean.tolist() == [3.0, 20.0]
    # Variances: ((-2)^2 + 0 + 2^2) / 3 and (100 + 100 + 400) / 3.
    torch.testing.assert_close(1 / statistics.inverse_deviation, torch.tensor([8 / 3, 200.0]).sqrt())
    normal = statistics.normalise(torch.tensor([[3.0, 20.0], [3.0 + math.sqrt(8 / 3), 20.0]]))
    torch.testing.assert_close(normal, torch.tensor([[0.0, 0.0], [1.0, 0.0]]))


def test_augmentation_hides_at_most_what_the_settings_allow():
    settings = AugmentationSettings(frequency_masks=1, frequency_width=3, time_masks=1, time_width=50, time_share=0.1)
    features = torch.ones(100, 20)
    widest = longest = 0
    for seed in range(60):
        hidden = hide_parts(features, settings, np.random.default_rng(seed)) == 0
        widest = max(widest, int(hidden.all(dim=0).sum()))
        longest = max(longest, int(hidden.all(dim=1).sum()))
    assert (widest, longest) == (3, 10)  # 10 is a tenth of the utterance, and less than 50
    assert bool((features == 1).all())
    first, again, other = (hide_parts(features, settings, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
