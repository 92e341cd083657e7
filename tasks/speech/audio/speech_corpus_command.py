"""Bring recordings in: a manifest of a published corpus of speech, or of recordings of your own, checked.

Reads LibriSpeech and the Wall Street Journal corpus as published (the latter's recordings converted from shorten),
SMS-WSJ's lists, and manifests: JSON lines {"utterance_id", "audio", "text"} with audio paths relative to the manifest.
WAV, FLAC, OGG, MP3 and AIFF, any sample rate. Every recording's header is checked; what cannot be used is left out,
counted and named in the report. The recordings stay where they are, and the output is a folder with manifest.jsonl.
The kind synthetic speaks a text instead (see palimpsest synthesise-speech).

Manifest and recordings are taken to be private: they are for you alone (modes 0700 and 0600), unless --public is given.

Examples:
  palimpsest speech-corpus --kind librispeech --source LibriSpeech --parts test-clean --public --output speech/test
  palimpsest speech-corpus --kind wsj --source csr --folders si_et_20 --output speech/eval92
  palimpsest speech-corpus --params params.yaml --section speech.corpora.test --output speech/test
"""

import argparse
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from tasks.parameters.source_values import source_values

SUMMARY = "bring recordings in: a checked manifest of published or own speech"
READS = ("source",)
WRITES = ("output",)
FILES = ("manifest.jsonl",)

_KINDS = ("manifest", "librispeech", "wsj", "sms_wsj", "synthetic")
_OPTIONS = ("source", "parts", "lists", "folders", "dataset", "signal", "maximum_seconds")


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of ``palimpsest speech-corpus``."""
    parser.add_argument("--output", metavar="FOLDER", required=True, help="folder for manifest.jsonl")
    parser.add_argument("--public", action="store_true", help="the speech is not private: others may read the output")
    parser.add_argument("--params", metavar="FILE", help="read the settings from a params.yaml")
    parser.add_argument("--section", metavar="KEY", help="with --params: the section that describes the speech")
    parser.add_argument("--report", metavar="FILE", help="write a report of what was done, numbers only")
    source = parser.add_argument_group("source", "override the section's settings")
    source.add_argument("--kind", choices=_KINDS, help="form of the source: manifest (default) or a published corpus")
    source.add_argument("--source", metavar="PATH", help="the corpus's folder, a manifest, sms_wsj.json, or a text")
    source.add_argument("--parts", metavar="NAME", nargs="+", help="librispeech: only these parts")
    source.add_argument("--lists", metavar="FILE", nargs="+", help="wsj: index files of utterances, below the source")
    source.add_argument("--folders", metavar="NAME", nargs="+", help="wsj: only recordings in folders of these names")
    source.add_argument("--dataset", metavar="NAME", help="sms_wsj: train_si284, cv_dev93 or test_eval92 (default)")
    source.add_argument(
        "--signal", metavar="NAME", help="sms_wsj: original_source (default), speech_source, speech_reverberation_early"
    )
    source.add_argument("--maximum-seconds", metavar="S", type=float, help="leave out longer recordings (default: 120)")


def sections(arguments: argparse.Namespace) -> list[str]:
    """The one section that describes the speech."""
    return [arguments.section] if arguments.params else []


def _settings(arguments: argparse.Namespace) -> Any:
    from tasks.settings.checks import check_settings
    from tasks.speech.audio.settings import SpeechSettings

    values = source_values(arguments, "manifest")
    given = {name: getattr(arguments, name) for name in _OPTIONS}
    values |= {name: value for name, value in given.items() if value is not None}
    return check_settings(SpeechSettings, values, arguments.section or "speech-corpus options")


def run(arguments: argparse.Namespace) -> None:
    """Write the manifest and the report."""
    settings = _settings(arguments)
    if settings.kind == "synthetic":
        _synthesise(arguments, settings)
        return
    from tasks.files.atomic_file import PRIVATE_FOLDER_MODE, make_folder
    from tasks.files.paths_apart import refuse_shared_paths
    from tasks.language_model.normalisation import normalise
    from tasks.records.stage_report import recorded_stage
    from tasks.settings.checks import as_plain
    from tasks.speech.audio.manifest import write_manifest
    from tasks.speech.audio.recordings import check_recordings

    if Path(settings.source).is_file():
        refuse_shared_paths([("source", settings.source)], [("--output", arguments.output)], files=FILES)
    recordings = _read(settings)
    found = len(recordings.utterances) + sum(map(len, recordings.left_out.values()))
    private = not arguments.public
    with recorded_stage(
        "speech_corpus",
        arguments.report,
        cell=_cell(arguments),
        parameters=as_plain(settings),
        inputs=recordings.transcripts,
        outputs=[arguments.output],
    ) as report:
        tally = check_recordings(recordings, settings.maximum_seconds, settings.source)
        folder = make_folder(arguments.output, private=private)
        if private:
            os.chmod(folder, PRIVATE_FOLDER_MODE)
        write_manifest(folder / "manifest.jsonl", recordings.utterances, private=private)
        synthetic = Counter(utterance.synthetic for utterance in recordings.utterances)
        report.measure(
            synthetic=synthetic[True] > 0,
            synthetic_utterances=synthetic[True],
            utterances=len(recordings.utterances),
            words=sum(len(normalise(utterance.text)) for utterance in recordings.utterances),
            audio_seconds=round(tally.seconds, 3),
            speakers=len({utterance.speaker for utterance in recordings.utterances if utterance.speaker is not None}),
            sample_rates={str(rate): count for rate, count in sorted(tally.sample_rates.items())},
            several_channels=tally.several_channels,
            left_out=recordings.left_out_counts(),
        )
        sentence = recordings.left_out_sentence()
        if sentence:
            report.warn(sentence)
    print(
        f"{settings.kind}: {len(recordings.utterances):,} of {found:,} utterances, {tally.seconds / 3600:.2f} hours; "
        + (sentence or "none left out"),
        file=sys.stderr,
    )


def _read(settings: Any) -> Any:
    match settings.kind:
        case "librispeech":
            from tasks.speech.audio.librispeech import read_librispeech

            return read_librispeech(settings)
        case "wsj":
            from tasks.speech.audio.wsj_speech import read_wsj_speech

            return read_wsj_speech(settings)
        case "sms_wsj":
            from tasks.speech.audio.sms_wsj import read_sms_wsj

            return read_sms_wsj(settings)
        case _:
            from tasks.speech.audio.manifest import read_manifest
            from tasks.speech.audio.recordings import Recordings

            return Recordings(read_manifest(settings.source), [Path(settings.source)])


def _synthesise(arguments: argparse.Namespace, settings: Any) -> None:
    from tasks.speech.synthesis.corpus_stage import synthesise_as_stage

    synthesise_as_stage(
        "speech_corpus",
        text=settings.source,
        output=arguments.output,
        settings=settings.synthesis,
        report_path=arguments.report,
        private=not arguments.public,
        cell=_cell(arguments),
    )


def _cell(arguments: argparse.Namespace) -> dict[str, str] | None:
    """The dataset that a section ``speech.corpora.NAME.PART`` belongs to."""
    keys = (arguments.section or "").split(".")
    return {"dataset": keys[2]} if len(keys) == 4 and keys[:2] == ["speech", "corpora"] else None
