"""The stage ``rescore``: from two files of n-best lists to all numbers of the report, and the files beside it."""

import argparse
import json
from typing import Any

from tasks.corpora.text_lines import write_lines
from tasks.speech.rescoring.hypothesis_table import LM, UNKNOWN
from tasks.speech.rescoring.nbest_lists import read_nbest
from tasks.speech.rescoring.rescoring import RescoredLists, complete_lists, rescore
from tasks.speech.rescoring.settings import RescoringSettings
from tasks.speech.rescoring.text_overlap import check_overlap, measure_overlap
from tasks.speech.rescoring.weight_grid import SHOWN_NAMES
from tasks.speech.word_errors.error_counts_file import write_errors
from tasks.speech.word_errors.error_listing import write_listing
from tasks.speech.word_errors.masked_words import masked_places
from tasks.speech.word_errors.measurement import measure_errors
from tasks.speech.word_errors.references import read_references
from tasks.speech.word_errors.settings import WordErrorSettings
from tasks.speech.word_errors.word_errors import count_errors, paired_difference
from tasks.torch_setup import set_up_torch

RATE_KEYS = ("wer", "wer_ci", "insertions", "deletions", "substitutions")


def rescored_numbers(
    arguments: argparse.Namespace,
    settings: RescoringSettings,
    intervals: WordErrorSettings,
    sidecars: dict[str, str],
    threads: int,
) -> dict[str, Any]:
    """All numbers of the stage; writes the files that were asked for."""
    test = read_nbest(arguments.nbest, settings.hypotheses_at_most)
    dev = read_nbest(arguments.dev, settings.hypotheses_at_most)
    if arguments.references:
        test = complete_lists(test, read_references(arguments.references))
    references = {nbest.utterance_id: nbest.reference for nbest in test}
    # The cheap things that can fail come before the model.
    masked = masked_places(references, sidecars, arguments.references or arguments.nbest)
    overlap = None
    if arguments.training_text:
        found = measure_overlap(references.values(), arguments.training_text)
        check_overlap(found, settings)
        overlap = found.as_numbers()
    if arguments.model:
        set_up_torch(threads)
    rescored = rescore(test, dev, arguments.model, settings, arguments.vocabulary_hash)
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
    both = {key: measured.pop(key) for key in (*RATE_KEYS, "utterances")}
    return {
        **both,
        "lm_weight": weights.pop("lm_weight"),
        "insertion_bonus": weights.pop("insertion_bonus"),
        "source_weight": weights.pop("source_weight", None),
        **weights,
        "baseline": {key: of_baseline[key] for key in (*RATE_KEYS, "character_error_rate", "masked_words")},
        "insertion_bonus_alone": {
            **{key: of_bonus[key] for key in RATE_KEYS},
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


def _of_dev(rescored: RescoredLists, lists: int) -> dict[str, Any]:
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
        "lowest_wer_of_grid": tuned.fewest_errors / words,
        "deviations": {SHOWN_NAMES[name]: value for name, value in tuned.deviation.items()},
        "unknown_word_share": float(unknown / max(1, sum(len(words) for group in dev.hypotheses for words in group))),
        "points_tried": tuned.points,
        "at_edge_of_grid": [SHOWN_NAMES[name] for name in tuned.at_edge],
        "grid": [
            {**{name: value for name, value in point.items() if name != "errors"}, "wer": point["errors"] / words}
            for point in tuned.grid
        ],
    }


def _write_hypotheses(path: str, rescored: RescoredLists) -> None:
    records = ({"utterance_id": name, "text": text} for name, text in rescored.chosen.items())
    write_lines(path, (json.dumps(record, ensure_ascii=False) for record in records), private=True)
