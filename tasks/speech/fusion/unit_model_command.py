"""Estimate a language model over the units of a recogniser, for 'palimpsest fuse'.

It is an n-gram model with modified Kneser-Ney smoothing whose vocabulary is the recogniser's pieces. Every unit has its
probability at once, so nothing is looked ahead, and no word is unknown. Other models of words cannot be compared with
it by perplexity: it counts pieces. The model of a private text is private.

example:
  palimpsest unit-language-model --recogniser models/recogniser --text train.txt --valid valid.txt --output models/units
  palimpsest fuse --model models/units --recogniser models/recogniser --dev dev.safetensors --dev-manifest dev.jsonl
      --test test.safetensors --test-manifest test.jsonl --output fused.jsonl
"""

import argparse
import sys
from typing import TYPE_CHECKING

from tasks.language_model.kind_settings import NgramSettings
from tasks.language_model.setting_options import add_setting_options, overridden

if TYPE_CHECKING:
    from tasks.language_model.encoded_text import EncodedText
    from tasks.speech.recogniser.units import Units

SUMMARY = "estimate a language model over a recogniser's units"
SECTION = "language_model.ngram"


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--params", help="parameter file to take the settings from, such as params.yaml")
    parser.add_argument("--recogniser", metavar="FOLDER", required=True, help="recogniser whose units are modelled")
    parser.add_argument("--text", metavar="FILE", required=True, help="text to learn from, one sentence a line")
    parser.add_argument("--valid", metavar="FILE", help="text to report the loss on")
    parser.add_argument("--output", metavar="FOLDER", required=True, help="folder to write the model to")
    parser.add_argument("--private", action="store_true", help="the text is private: let nobody else read the model")
    parser.add_argument("--report", metavar="FILE", help="report file to write (JSON, numbers only)")
    add_setting_options(parser, NgramSettings, "model", leave_out=["generic_weight"])


def sections(arguments: argparse.Namespace) -> list[str]:
    """Key paths of the parameter file that decide the result."""
    return [SECTION]


def run(arguments: argparse.Namespace) -> None:
    """Divide the text into units, count, write the model."""
    from tasks.language_model.model_folder import check_replaceable
    from tasks.language_model.ngram.folder import save_new
    from tasks.language_model.ngram.kneser_ney import estimate
    from tasks.language_model.ngram.mixture import NgramMixture
    from tasks.params import as_plain, check_settings, read_sections
    from tasks.reports.stage_report import recorded_stage
    from tasks.speech.fusion.subword_fusion import unit_vocabulary
    from tasks.speech.recogniser.folder import load_recogniser

    base = read_sections(arguments.params, [SECTION])[SECTION] if arguments.params else None
    settings = check_settings(NgramSettings, overridden(arguments, NgramSettings, base), "model options")
    check_replaceable(arguments.output)
    with recorded_stage(
        "unit-language-model",
        arguments.report,
        parameters={SECTION: as_plain(settings)},
        inputs=[path for path in (arguments.recogniser, arguments.text, arguments.valid) if path],
        outputs=[arguments.output],
    ) as report:
        units = load_recogniser(arguments.recogniser).units
        vocabulary = unit_vocabulary(units.pieces)
        text = encode_units(arguments.text, units)
        valid = encode_units(arguments.valid, units) if arguments.valid else None
        model, _ = estimate(text, settings.order, len(vocabulary))
        save_new(arguments.output, model, vocabulary, private=arguments.private)
        loss = NgramMixture([model], [1.0]).mean_loss(valid) if valid else None
        report.measure(
            units=len(units.pieces),
            units_hash=units.hash,
            vocabulary_hash=vocabulary.hash,
            order=settings.order,
            sentences=text.sentences,
            text_units=text.words,
            valid_nats_a_unit=loss,
        )
    said = "" if loss is None else f"; {loss:.3f} nats a unit on the validation text"
    print(
        f"unit-language-model: order {settings.order} over {len(units.pieces)} units, from {text.words:,} units of "
        f"{text.sentences:,} sentences{said}",
        file=sys.stderr,
    )


def encode_units(path: str, units: "Units") -> "EncodedText":
    """A text file as ids of units behind the special tokens, as ``unit_vocabulary`` numbers them.

    Raises ``CorpusError`` where no line has a word.
    """
    import numpy as np

    from tasks.corpora.text_lines import read_lines
    from tasks.errors import CorpusError
    from tasks.language_model.encoded_text import EncodedText
    from tasks.language_model.vocabulary import END_ID, SPECIAL_TOKENS, START_ID

    tokens: list[int] = []
    offsets, lines, empty = [0], [], 0
    for number, line in enumerate(read_lines(path), start=1):
        found = units.encode(line)
        if not found:
            empty += 1
            continue
        tokens += [START_ID, *(unit + len(SPECIAL_TOKENS) for unit in found), END_ID]
        offsets.append(len(tokens))
        lines.append(number)
    if not lines:
        raise CorpusError(f"corpus file {path!r} holds no word; a language model needs text")
    return EncodedText(
        tokens=np.array(tokens, dtype=np.int32),
        offsets=np.array(offsets, dtype=np.int64),
        lines=np.array(lines, dtype=np.int64),
        empty_lines=empty,
        marker_like=0,
        markers_are_targets=True,
    )
