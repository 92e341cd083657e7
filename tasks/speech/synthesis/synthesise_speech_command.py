"""Speak a text: recordings and their manifest, made by eSpeak NG, to train and test a recogniser without data.

The text has one sentence a line. The output is a folder with a FLAC file per sentence and manifest.jsonl, in which
every utterance is marked as synthetic. The voice sets train, dev and test share no accent and no timbre. Sentences
with digits (how a number is read is open), without words, in another script, too short or too long are left out and
counted. Same text, same seed, same recordings.

The text is taken to be private: folder and files are for you alone (modes 0700 and 0600), unless --public is given.

Examples:
  palimpsest synthesise-speech --text test.txt --output speech/test --voices test --sentences 500
  palimpsest synthesise-speech --text test.txt --output speech/test --params params.yaml --section speech.synthesis.test
"""

import argparse
from typing import Any

from tasks.errors import ParameterError

SUMMARY = "speak a text with synthetic voices: recordings and their manifest"
READS = ("text",)
WRITES = ("output",)
REPLACES = True

_NUMBER_OPTIONS = (
    ("sentences", "at most so many sentences, drawn by the seed (default: all)"),
    ("minimum_words", "leave out sentences with fewer words (default: 1)"),
    ("maximum_words", "leave out sentences with more words (default: 40)"),
    ("sample_rate", "samples in a second of the recordings (default: 16000)"),
    ("seed", "seed of the sentences, voices and noise (default: 1)"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of ``palimpsest synthesise-speech``."""
    parser.add_argument("--text", metavar="FILE", required=True, help="UTF-8 text, one sentence a line")
    parser.add_argument(
        "--output", metavar="FOLDER", required=True, help="folder for the recordings and manifest.jsonl"
    )
    parser.add_argument("--public", action="store_true", help="the text is not private: others may read the output")
    parser.add_argument("--params", metavar="FILE", help="read the settings from a params.yaml")
    parser.add_argument("--section", metavar="KEY", help="with --params: the section of the settings")
    parser.add_argument("--report", metavar="FILE", help="write a report of what was done, numbers only")
    settings = parser.add_argument_group("settings", "override the section's or the defaults")
    settings.add_argument("--voices", choices=("train", "dev", "test"), help="set of voices (default: test)")
    for name, text in _NUMBER_OPTIONS:
        settings.add_argument(f"--{name.replace('_', '-')}", type=int, metavar="N", help=text)
    settings.add_argument(
        "--noise", metavar="KIND", nargs="*", help="kinds of noise: white, pink, babble (default: all); none: no noise"
    )
    settings.add_argument(
        "--signal-to-noise",
        metavar=("LOW", "HIGH"),
        nargs=2,
        type=float,
        help="range of the signal-to-noise ratio in dB (default: 10 25)",
    )


def sections(arguments: argparse.Namespace) -> list[str]:
    """The one section that describes the speech."""
    return [arguments.section] if arguments.params else []


def _settings(arguments: argparse.Namespace) -> Any:
    from tasks.parameters.parameter_file import read_sections
    from tasks.settings.checks import as_plain, check_settings
    from tasks.speech.synthesis.settings import SynthesisSettings

    if bool(arguments.params) != bool(arguments.section):
        raise ParameterError("--params and --section go together: give both, or neither")
    values: dict[str, Any] = {}
    if arguments.params:
        values = as_plain(read_sections(arguments.params, [arguments.section])[arguments.section])
    given = {name: getattr(arguments, name) for name, _ in _NUMBER_OPTIONS}
    given |= {"voice_set": arguments.voices, "noise_kinds": arguments.noise}
    if arguments.signal_to_noise:
        given["minimum_signal_to_noise"], given["maximum_signal_to_noise"] = arguments.signal_to_noise
    values |= {name: value for name, value in given.items() if value is not None}
    return check_settings(SynthesisSettings, values, arguments.section or "synthesise-speech options")


def run(arguments: argparse.Namespace) -> None:
    """Write the recordings, the manifest and the report."""
    settings = _settings(arguments)
    from tasks.speech.synthesis.corpus_stage import synthesise_as_stage

    synthesise_as_stage(
        "synthesise_speech",
        text=arguments.text,
        output=arguments.output,
        settings=settings,
        report_path=arguments.report,
        private=not arguments.public,
    )
