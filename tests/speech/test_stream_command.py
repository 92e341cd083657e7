"""Partial results: what is held back and taken back, how late words are, and that a live system hears the same."""

import pytest
import torch
from command_results import measured, report, write_records
from tiny_recogniser import RATE, write_noise

from tasks.speech import stream_command
from tasks.speech.audio.audio_file import read_audio
from tasks.speech.recogniser.recogniser import load_recogniser
from tasks.speech.rescoring.settings import SearchSettings
from tasks.speech.search.beam_search import beam_search
from tasks.speech.stream_command import average_lag, erased_words, held_back, partial

SPOKEN = [(1, "we"), (2, "we wreck a"), (3, "we recognise speech"), (4, "we recognise speech now")]


@pytest.mark.parametrize(
    ("words", "seen", "erased", "lag"),
    [
        # "we" from 1 s on, two words from 3 s, "now" at 4 s: 1 - 0, 3 - 1, 3 - 2, 4 - 3; "wreck a" is taken back.
        (0, ["we", "we wreck a", "we recognise speech", "we recognise speech now"], 2, 5 / 4),
        (1, ["", "we wreck", "we recognise", "we recognise speech now"], 1, (2 + 2 + 2) / 3),
        (2, ["", "we", "we", "we recognise speech now"], 0, (2 + 3) / 2),
        (None, ["", "", "", "we recognise speech now"], 0, 4),
    ],
)
def test_words_held_back_by_hand(words, seen, erased, lag):
    found = held_back([partial(*each) for each in SPOKEN], words)
    assert [" ".join(each.words) for each in found] == seen
    assert erased_words(found) == erased
    assert average_lag(found) == pytest.approx(lag)


def stream(recogniser_folder, tmp_path, **seconds):
    """The command for noise of these lengths."""
    manifest, encoded = write_noise(tmp_path, **seconds), tmp_path / "encoded"
    given = ["--recogniser", recogniser_folder, "--threads", "1"]
    measured("encode-speech", *given, "--manifest", manifest, "--output", encoded)
    return ["stream", *given, "--encoded", encoded, "--references", manifest]


def test_figures_by_hand(recogniser_folder, tmp_path, monkeypatch):
    command = stream(recogniser_folder, tmp_path, u1=0.4, u2=0.4)
    results = {"u1": SPOKEN, "u2": [(1, "yes")]}
    said = [{"utterance_id": name, "text": of[-1][1]} for name, of in results.items()]
    write_records(tmp_path / "manifest.jsonl", said)
    monkeypatch.setattr(stream_command, "decoded", lambda *_: results)
    found = measured(*command, "--set", "held_back=[0, 2]")
    assert found["wer"] == 0
    by_words = found["held_back"]
    assert {
        words: (each["normalised_erasure"], each["nothing_taken_back"]["wer"]) for words, each in by_words.items()
    } == {"0": (2 / 5, 2 / 5), "2": (0, 0), "all": (0, 0)}
    assert by_words["all"]["average_lag_seconds"] == 5 / 2


def test_partial_results_are_those_of_the_audio_that_was_heard(recogniser_folder, tmp_path, monkeypatch):
    lengths, found = {"long": 1.3, "short": 0.4}, {}
    command, decoded = stream(recogniser_folder, tmp_path, **lengths), stream_command.decoded
    monkeypatch.setattr(stream_command, "decoded", lambda *given: found.update(decoded(*given)) or found)
    document = report(*command, "--set", "step_seconds=0.25")
    assert document["measured"]["synthetic_speech"]
    assert "the speech is synthesised; its numbers do not hold for recorded speech" in document["warnings"]
    assert [seconds for seconds, _ in found["long"]] == [0.25, 0.5, 0.75, 1.0, 1.25, 1.3]
    assert [seconds for seconds, _ in found["short"]] == [0.25, 0.4]
    recogniser = load_recogniser(recogniser_folder)
    model, architecture, heard = recogniser.model, recogniser.settings.architecture, []
    segment, right = architecture.segment_frames, architecture.right_context_frames
    for name, partials in found.items():
        features = recogniser.features(read_audio(tmp_path / f"{name}.wav", RATE))
        for seconds, _ in partials:
            # Segment after segment, as torchaudio encodes speech that is still being spoken. Windows are centred.
            known = int((seconds * RATE - 200) // 160) + 1
            is_last, state, ready = seconds == lengths[name], None, [torch.zeros(0, 16)]
            frames = len(features) if is_last else max(known - right, 0) // segment * segment
            padded = torch.nn.functional.pad(features, (0, 0, 0, segment + right))
            for begin in range(0, frames, segment):
                with torch.no_grad():
                    part = padded[None, begin : begin + segment + right]
                    encoded, _, state = model.transcribe_streaming(part, torch.tensor([segment + right]), state)
                ready.append(encoded[0, : min(segment, frames - begin) // architecture.reduction])
            ((best, *_),) = beam_search(model, recogniser.units.blank, [torch.cat(ready)], SearchSettings())
            heard.append(recogniser.units.decode(best.units))
    assert heard == [text for partials in found.values() for _, text in partials]
    assert len(set(heard)) > 4
