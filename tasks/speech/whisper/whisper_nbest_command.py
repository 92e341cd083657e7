"""Decode recordings with Whisper, and write n-best lists of hypotheses for 'palimpsest rescore'.

--model is a name on the hub, a folder, or package:NAME/PATH, a folder in an installed package.
Scores are log-probabilities in nats, corrected for length as in Whisper's own code. A score is the
mean over the pieces of the hypothesis, times the number of pieces of the best one. Hypotheses that
differ only in case and punctuation count as one.

Whisper writes numbers in digits and abbreviates titles. --set no_digits=true makes it spell numbers
out. Titles such as Mr. remain, and the report counts them. Recordings longer than 30 s are cut in
pauses, and long pauses are left out. The report names these recordings. The lists are private (mode
0600).

example:
  palimpsest whisper-nbest --manifest test/manifest.jsonl --model openai/whisper-tiny.en --set no_digits=true \\
      --output test.jsonl.gz
"""

import re
import sys
import time
from collections import Counter
from typing import Annotated

from tasks.command import StageCommand, StageFiles
from tasks.options import READ, READ_MODEL, WRITE
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.resources import ResourceSettings
from tasks.speech.rescoring.nbest_lists import NbestList, ScoredHypothesis, write_nbest
from tasks.speech.rescoring.settings import WhisperSettings

SUMMARY = "decode recordings with Whisper, and write n-best lists"
_NAMED = 10
_SCORE_DIGITS = 4
_ABBREVIATION = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|St|Prof|Capt|Col|Gen|Lt|Jr|Sr)\.", re.IGNORECASE)
"""Titles that Whisper abbreviates and that transcripts often spell out."""


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
    from tasks.speech.audio.manifest import read_manifest, recording_seconds
    from tasks.torch_setup import set_up_torch

    utterances, limit = read_manifest(files.manifest), settings.maximum_seconds
    set_up_torch(resources.threads)
    from tasks.speech.whisper.recogniser import SAMPLE_RATE, has_digits, load_whisper
    from tasks.speech.whisper.transcription import hypotheses_of, merge_spellings

    recogniser = load_whisper(files.model)
    search, seconds = recogniser.search(settings), recording_seconds(utterances, limit)
    lists: list[NbestList] = []
    windowed: list[str] = []
    unfinished: list[str] = []
    tally, started = Counter[str](), time.perf_counter()
    with tqdm(total=round(sum(seconds)), unit=" s of speech", desc="decoding", disable=None, leave=False) as bar:
        for utterance, length in zip(utterances, seconds, strict=True):
            samples = read_audio(utterance.audio, SAMPLE_RATE, maximum_seconds=limit, tally=tally)
            joined, finished = hypotheses_of(recogniser, samples, search, settings.beam_width)
            windowed += [utterance.utterance_id] if len(samples) > recogniser.longest else []
            unfinished += [] if finished else [utterance.utterance_id]
            merged = merge_spellings(joined)[: settings.nbest]
            rounded = tuple(ScoredHypothesis(one.text, round(one.score, _SCORE_DIGITS)) for one in merged)
            lists.append(NbestList(utterance.utterance_id, utterance.text, rounded))
            bar.update(round(length))
    audio_seconds, decode_seconds = sum(seconds), time.perf_counter() - started
    write_nbest(files.output, lists)
    synthetic = any(utterance.synthetic for utterance in utterances)
    hypotheses = sum(len(one.hypotheses) for one in lists)
    best = [one.best.text for one in lists if one.hypotheses]
    # Texts that may not be spelled as the references are; digits include signs that are read aloud.
    with_digits, said_with_digits = sum(map(has_digits, best)), sum(has_digits(one.reference) for one in lists)
    titles = sum(len(_ABBREVIATION.findall(text)) for text in best)
    report = Report().measure(
        utterances=len(lists),
        hypotheses=hypotheses,
        windowed=len(windowed),
        unfinished=len(unfinished),
        best_with_digits=with_digits,
        references_with_digits=said_with_digits,
        abbreviated_titles=titles,
        mixed_down=tally["mixed_down"],
        resampled=tally["resampled"],
        synthetic=synthetic,
        model_parameters=sum(weights.numel() for weights in recogniser.model.parameters()),
        model_commit=recogniser.commit,
        audio_seconds=round(audio_seconds, 3),
        decode_seconds=round(decode_seconds, 3),
        real_time_factor=decode_seconds / audio_seconds,
        threads=resources.threads,
    )
    for names, what in (
        (windowed, "recordings are longer than one window and were cut"),
        (unfinished, "utterances did not end within the pieces that are allowed"),
    ):
        if names:
            more = ", ..." if len(names) > _NAMED else ""
            report.warn(f"{len(names)} {what}: {', '.join(names[:_NAMED])}{more}")
    if with_digits and not said_with_digits:
        report.warn(
            f"{with_digits} best hypotheses have digits or signs such as %, and no reference has: no_digits spells "
            "them out"
        )
    if titles:
        report.warn(
            f"{titles} titles are abbreviated (Mr., Dr.); each counts as an error where the reference spells it out"
        )
    if synthetic:
        report.warn("the speech is synthetic")
    print(
        f"whisper-nbest: {len(lists):,} utterances, {hypotheses / len(lists):.1f} hypotheses each, "
        f"{audio_seconds / 60:.1f} minutes of {'synthetic ' if synthetic else ''}speech, real-time factor "
        f"{decode_seconds / audio_seconds:.3f}; {files.output}",
        file=sys.stderr,
    )
    return report


COMMAND = StageCommand("whisper-nbest", whisper_nbest, WhisperSettings, WhisperFiles, section={}, labels=("dataset",))
