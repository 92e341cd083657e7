"""Speech that is decoded a beginning at a time hears what a live system hears at that moment."""

import json

import numpy as np
import pytest
import soundfile
import torch

from tasks.cli import main
from tasks.speech.audio.audio_file import read_audio
from tasks.speech.audio.manifest import Utterance, write_manifest
from tasks.speech.recogniser.folder import load_recogniser, save_recogniser
from tasks.speech.recogniser.recogniser import (
    FeatureStatistics,
    Recogniser,
    RecogniserDescription,
    StreamingTranscriber,
    make_model,
)
from tasks.speech.recogniser.settings import FeatureSettings, RecogniserArchitecture
from tasks.speech.recogniser.units import train_units
from tasks.speech.rescoring.settings import SearchSettings
from tasks.speech.search.beam_search import beam_search
from tasks.speech.streaming.partial_results import read_partials

RATE, SECONDS = 16_000, {"long": 1.3, "short": 0.4}


@pytest.fixture
def speech(tmp_path):
    """A recogniser with random weights, recordings of noise, and their encoding."""
    units = train_units(["the dog and the cat", "a cat and a dog"] * 4, 13, 100)
    features = FeatureSettings(bands=8)
    architecture = RecogniserArchitecture(
        encoding=16, reduction_input=4, layers=1, heads=2, feed_forward=16, predictor_width=16
    )
    model = make_model(architecture, features, len(units) + 1, seed=1).eval()
    with torch.no_grad():
        model.joiner.linear.weight.mul_(3)
        model.joiner.linear.bias[-1] += 1.5
    statistics = FeatureStatistics(torch.zeros(8), torch.ones(8))
    description = RecogniserDescription(features=features, architecture=architecture, origin="random", synthetic=True)
    save_recogniser(tmp_path / "recogniser", Recogniser(model, units, statistics, description), store="float32")
    generator = np.random.default_rng(1)
    utterances = []
    for name, seconds in SECONDS.items():
        path = tmp_path / f"{name}.wav"
        soundfile.write(path, 0.1 * generator.standard_normal(round(RATE * seconds)), RATE, subtype="FLOAT")
        utterances.append(Utterance(name, path, "a dog", synthetic=True))
    write_manifest(tmp_path / "manifest.jsonl", utterances)
    options = ["--manifest", f"{tmp_path}/manifest.jsonl", "--output", f"{tmp_path}/encoded", "--threads", "1"]
    options += ["--set", "store=float32", "--set", "streaming=true"]
    assert main(["encode-speech", "--recogniser", f"{tmp_path}/recogniser", *options]) == 0
    return tmp_path


def test_partial_results_are_those_of_a_live_system(speech):
    files = ["--recogniser", f"{speech}/recogniser", "--encoded", f"{speech}/encoded", "--threads", "1"]
    files += ["--references", f"{speech}/manifest.jsonl", "--output", f"{speech}/partials.jsonl"]
    assert main(["stream", *files, "--set", "step_seconds=0.25", "--report", f"{speech}/report.json"]) == 0
    found = read_partials(speech / "partials.jsonl")
    assert [seconds for seconds, _ in found["long"]] == [0.25, 0.5, 0.75, 1.0, 1.25, 1.3]
    assert [seconds for seconds, _ in found["short"]] == [0.25, 0.4]
    recogniser = load_recogniser(speech / "recogniser")
    stream = StreamingTranscriber(recogniser.model, recogniser.settings.architecture)
    heard: list[str] = []
    for name, partials in found.items():
        features = recogniser.features(read_audio(speech / f"{name}.wav", RATE))
        frames, ready = 0, torch.zeros(0, 16)
        for seconds, _ in partials:
            # The last window that lies within what was heard; windows are centred.
            known = len(features) if seconds == SECONDS[name] else int((seconds * RATE - 200) // 160) + 1
            ready = torch.cat([ready, stream.feed(features[frames:known])])
            frames = known
            if seconds == SECONDS[name]:
                ready = torch.cat([ready, stream.finish()])
            ((best, *_),) = beam_search(recogniser.model, recogniser.units.blank, [ready], SearchSettings())
            heard.append(recogniser.units.decode(best.units))
    assert heard == [text for partials in found.values() for _, text in partials]
    assert len(set(heard)) > 4
    document = json.loads((speech / "report.json").read_text())
    assert document["measured"]["synthetic_speech"]
    assert "the speech is synthesised; its numbers say nothing of recorded speech" in document["warnings"]


def test_a_bias_is_asked_of_the_recogniser(speech, capsys):
    files = ["--recogniser", f"{speech}/recogniser", "--encoded", f"{speech}/encoded", "--threads", "1"]
    files += ["--references", f"{speech}/manifest.jsonl"]
    assert main(["stream", *files, "--set", "search.language_bias={es: null}"]) == 1
    assert "the recogniser has no language 'es'" in capsys.readouterr().err
