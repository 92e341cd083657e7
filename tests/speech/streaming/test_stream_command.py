"""Partial results: what is held back and taken back, how late words are, and that a live system hears the same."""

import pytest
import torch
from command_results import measured, refusal, report, write_records
from tiny_recogniser import RATE, write_noise

from tasks.speech.audio.audio_file import read_audio
from tasks.speech.recogniser.recogniser import load_recogniser
from tasks.speech.recogniser.recogniser import StreamingTranscriber
from tasks.speech.rescoring.settings import SearchSettings
from tasks.speech.search.beam_search import beam_search
from tasks.speech.streaming.stream_command import average_lag, erased_words, held_back, partial, read_partials

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


def test_the_command_measures_results_of_any_recogniser(tmp_path):
    said, heard = [], []
    for name, results in (("u1", SPOKEN), ("u2", [(1, "yes")])):
        said.append({"utterance_id": name, "text": results[-1][1]})
        heard.append({"utterance_id": name, "partials": [{"seconds": s, "text": text} for s, text in results]})
    manifest = write_records(tmp_path / "manifest.jsonl", said)
    partials = write_records(tmp_path / "partials.jsonl", heard)
    found = measured("stream", "--references", manifest, "--partials", partials, "--set", "held_back=[0, 2]")
    assert found["wer"] == 0
    by_words = found["held_back"]
    assert {
        words: (each["normalised_erasure"], each["nothing_taken_back"]["wer"]) for words, each in by_words.items()
    } == {"0": (2 / 5, 2 / 5), "2": (0, 0), "all": (0, 0)}
    assert by_words["all"]["average_lag_seconds"] == 5 / 2
    assert "give --partials, or --recogniser and --encoded" in refusal("stream", "--references", manifest)


def test_partial_results_are_those_of_a_live_system(recogniser_folder, tmp_path):
    lengths = {"long": 1.3, "short": 0.4}
    manifest, encoded, output = write_noise(tmp_path, **lengths), tmp_path / "encoded", tmp_path / "partials.jsonl"
    given = ["--recogniser", recogniser_folder, "--threads", "1"]
    streaming = ["--set", "store=float32", "--set", "streaming=true"]
    measured("encode-speech", *given, "--manifest", manifest, "--output", encoded, *streaming)
    command = ["stream", *given, "--encoded", encoded, "--references", manifest, "--output", output]
    document = report(*command, "--set", "step_seconds=0.25")
    assert document["measured"]["synthetic_speech"]
    assert "the speech is synthesised; its numbers do not hold for recorded speech" in document["warnings"]
    found = read_partials(output)
    assert [seconds for seconds, _ in found["long"]] == [0.25, 0.5, 0.75, 1.0, 1.25, 1.3]
    assert [seconds for seconds, _ in found["short"]] == [0.25, 0.4]
    recogniser = load_recogniser(recogniser_folder)
    stream = StreamingTranscriber(recogniser.model, recogniser.settings.architecture)
    heard = []
    for name, partials in found.items():
        features = recogniser.features(read_audio(tmp_path / f"{name}.wav", RATE))
        frames, ready = 0, torch.zeros(0, 16)
        for seconds, _ in partials:
            is_last = seconds == lengths[name]
            # The last window that lies within the beginning that was heard; windows are centred.
            known = len(features) if is_last else int((seconds * RATE - 200) // 160) + 1
            ready = torch.cat([ready, stream.feed(features[frames:known]), *([stream.finish()] if is_last else [])])
            frames = known
            ((best, *_),) = beam_search(recogniser.model, recogniser.units.blank, [ready], SearchSettings())
            heard.append(recogniser.units.decode(best.units))
    assert heard == [text for partials in found.values() for _, text in partials]
    assert len(set(heard)) > 4
    assert "the recogniser has no language 'es'" in refusal(*command, "--set", "search.language_bias={es: null}")
