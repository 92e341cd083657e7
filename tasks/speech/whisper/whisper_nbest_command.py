"""Decode recordings with Whisper, and write n-best lists of hypotheses for 'palimpsest rescore'.

--model is a name on the hub, a folder, or package:NAME/PATH, a folder in an installed package.
Scores are log-probabilities in nats, corrected for length as in Whisper's own code. A score is the
mean over the pieces of the hypothesis, times the number of pieces of the best one. Hypotheses that
differ only in case and punctuation count as one.

Whisper writes numbers in digits and abbreviates titles. --set no_digits=true makes it spell numbers
out. Titles such as Mr. remain. Recordings longer than 30 s are cut in pauses, and long pauses are left
out. The lists are private (mode 0600).

example:
  palimpsest whisper-nbest --manifest test/manifest.jsonl --model openai/whisper-tiny.en --set no_digits=true \\
      --output test.jsonl.gz
"""

import time
from typing import Annotated

from tasks.command import StageCommand, StageFiles
from tasks.options import READ, READ_MODEL, WRITE
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.resources import ResourceSettings
from tasks.speech.rescoring.nbest_lists import NbestList, ScoredHypothesis, write_nbest
from tasks.speech.rescoring.settings import WhisperSettings

SUMMARY = "decode recordings with Whisper, and write n-best lists"
_SCORE_DIGITS = 4


class WhisperFiles(StageFiles):
    """Recordings, the model, and the output file."""

    manifest: Annotated[str, READ]
    """manifest of the recordings (JSON lines)"""
    model: Annotated[str, READ_MODEL]
    """Whisper model: hub name, folder or package:NAME/PATH"""
    output: Annotated[str, WRITE]
    """file for the n-best lists: .jsonl or .jsonl.gz"""


def whisper_nbest(settings: WhisperSettings, files: WhisperFiles, cell: Cell, resources: ResourceSettings) -> Report:
    """Decode the recordings and write the lists.

    Before decoding, raises ``SpeechError`` that lists unreadable or too long recordings, as far as headers show. Raises
    ``ParameterError`` for a language that the model does not have.
    """
    from tqdm import tqdm

    from tasks.speech.audio.audio_file import read_audio
    from tasks.speech.audio.manifest import read_manifest, recording_facts
    from tasks.torch_setup import set_up_torch

    utterances, limit = read_manifest(files.manifest), settings.maximum_seconds
    set_up_torch(resources.threads)
    from tasks.speech.whisper.recogniser import SAMPLE_RATE, hypotheses_of, load_whisper, merge_spellings

    recogniser = load_whisper(files.model)
    search, seconds = recogniser.search(settings), [facts.seconds for facts in recording_facts(utterances, limit)]
    lists: list[NbestList] = []
    started, windowed = time.perf_counter(), 0
    with tqdm(total=round(sum(seconds)), unit=" s of speech", desc="decoding", disable=None, leave=False) as bar:
        for utterance, length in zip(utterances, seconds, strict=True):
            samples = read_audio(utterance.audio, SAMPLE_RATE, maximum_seconds=limit)
            windowed += len(samples) > recogniser.longest
            merged = merge_spellings(hypotheses_of(recogniser, samples, search, settings.beam_width))[: settings.nbest]
            rounded = tuple(ScoredHypothesis(one.text, round(one.score, _SCORE_DIGITS)) for one in merged)
            lists.append(NbestList(utterance.utterance_id, utterance.text, rounded))
            bar.update(round(length))
    audio_seconds, decode_seconds = sum(seconds), time.perf_counter() - started
    write_nbest(files.output, lists)
    report = Report().measure(
        utterances=len(lists),
        hypotheses=sum(len(one.hypotheses) for one in lists),
        windowed=windowed,
        synthetic=any(utterance.synthetic for utterance in utterances),
        model_commit=recogniser.commit,
        audio_seconds=round(audio_seconds, 3),
        real_time_factor=decode_seconds / audio_seconds,
    )
    if windowed:
        report.warn(f"{windowed} recordings are longer than one window and were cut")
    if report.measured["synthetic"]:
        report.warn("the speech is synthetic")
    report.shown = (
        f"lists of {len(lists):,} utterances, {audio_seconds / 60:.1f} minutes of speech, real-time factor "
        f"{report.measured['real_time_factor']:.3f}; {files.output}"
    )
    return report


COMMAND = StageCommand("whisper-nbest", whisper_nbest, WhisperSettings, WhisperFiles, section={}, labels=("dataset",))
