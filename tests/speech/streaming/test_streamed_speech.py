"""Speech that is decoded a beginning at a time hears what a live system hears at that moment."""

import json

import numpy as np
import pytest
import soundfile
import torch
from tiny_recogniser import random_recogniser

from tasks.cli import main
from tasks.speech.audio.audio_file import read_audio
from tasks.speech.audio.manifest import Utterance, write_manifest
from tasks.speech.recogniser.folder import load_recogniser, save_recogniser
from tasks.speech.recogniser.recogniser import StreamingTranscriber
from tasks.speech.rescoring.settings import SearchSettings
from tasks.speech.search.beam_search import beam_search
from tasks.speech.streaming.partial_results import read_partials

RATE, SECONDS = 16_000, {"long": 1.3, "short": 0.4}


@pytest.fixture
def speech(tmp_path):
    """A recogniser with random weights, recordings of noise, and their encoding."""
    save_recogniser(tmp_path / "recogniser", random_recogniser(emits=True))
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


def test_partial_results_are_those_of_a_live_system(speech, refusal):
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
    assert "the speech is synthesised; its numbers do not hold for recorded speech" in document["warnings"]
    assert "the recogniser has no language 'es'" in refusal(
        "stream", *files, "--set", "search.language_bias={es: null}"
    )
