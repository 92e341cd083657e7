"""The stage ``rescore``: from two files of n-best lists to all numbers of the report, and the files beside it."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.corpora.text_lines import finite_number, write_lines
from tasks.errors import SpeechError
from tasks.language_model.divided_model import DividedModel
from tasks.language_model.language_models import LanguageModel, Precision
from tasks.language_model.model_folder import kind_of_model
from tasks.settings.resources import ResourceSettings
from tasks.speech.rescoring.hypothesis_table import (
    LM,
    SHOWN_NAMES,
    SOURCE,
    UNKNOWN,
    WORD_COUNT,
    HypothesisTable,
    TunedWeights,
    axes_of,
    hypothesis_table,
    tune_weights,
    with_language_model,
)
from tasks.speech.rescoring.nbest_lists import NbestList, check_vocabulary, expected_vocabulary, read_nbest
from tasks.speech.rescoring.settings import RescoreSettings, RescoringSettings
from tasks.speech.word_errors.error_counts_file import measure_errors, shown_rate
from tasks.speech.word_errors.references import check_overlap, measure_overlap, read_references
from tasks.speech.word_errors.word_error_rate_command import listing_beside
from tasks.speech.word_errors.word_errors import count_errors, paired_difference, refuse_unknown_ids

if TYPE_CHECKING:
    from tasks.speech.rescoring.rescore_command import RescoreFiles

OpenModel = Callable[[str, Precision], LanguageModel]


@dataclass(frozen=True)
class RescoredLists:
    """All hypotheses, and the weights to choose among them by."""

    tuned: TunedWeights | None
    """``None`` without a language model."""
    tuned_bonus: TunedWeights
    """Of an insertion bonus alone."""
    dev: HypothesisTable
    test: HypothesisTable
    numbers: Mapping[str, Any]
    """What was done, for the report."""


def rescore(
    test: Sequence[NbestList],
    dev: Sequence[NbestList],
    model: str | None,
    settings: RescoringSettings,
    open_model: OpenModel,
    vocabulary_hash: str | None = None,
) -> RescoredLists:
    """Score both by the language model of a folder or a name, and tune on ``dev``.

    Without a ``model`` an insertion bonus alone is tuned. Raises ``ModelError`` where a model cannot be read, or where
    its vocabulary is not the one that the lists or ``vocabulary_hash`` name.
    """
    tables = [hypothesis_table(dev, "n-best lists of --dev"), hypothesis_table(test, "n-best lists of --nbest")]
    expected = vocabulary_hash or expected_vocabulary([*dev, *test])
    numbers: dict[str, Any] = {}
    for name, source in ((LM, model), (SOURCE, settings.source_model if model else None)):
        if source is None:
            continue
        # What is subtracted may be of a kind that has one precision only, such as LODR's n-gram model.
        own = name == LM or kind_of_model(source) == "causal_lm"
        language_model = open_model(source, settings.precision if own else "auto")
        if name == LM:
            check_vocabulary(language_model.vocabulary_hash, expected, source)
        clock = time.perf_counter()
        tables = with_language_model(tables, language_model, name)
        seconds = time.perf_counter() - clock
        numbers[f"{name}_vocabulary"] = language_model.vocabulary_hash
        numbers[f"{name}_seconds"] = round(seconds, 3)
        numbers[f"{name}_hypotheses_per_second"] = round(sum(table.hypothesis_count for table in tables) / seconds, 1)
    dev_table, test_table = tables
    tuned = tune_weights(dev_table, axes_of(settings, dev_table), settings.resamples) if model else None
    tuned_bonus = tune_weights(dev_table, {WORD_COUNT: settings.insertion_bonuses}, settings.resamples)
    return RescoredLists(tuned, tuned_bonus, dev_table, test_table, numbers)


def complete_lists(lists: Sequence[NbestList], references: Mapping[str, str]) -> list[NbestList]:
    """The lists with the references of a manifest; an utterance that has no list gets an empty one.

    Raises ``SpeechError`` where a list is of an utterance that the manifest does not have.
    """
    by_id = {nbest.utterance_id: nbest for nbest in lists}
    refuse_unknown_ids(by_id.keys(), references, "n-best lists are of utterances that the references do not have")
    return [
        replace(by_id[name], reference=text) if name in by_id else NbestList(name, text, ())
        for name, text in references.items()
    ]


RATE_KEYS = ("wer", "wer_ci", "insertions", "deletions", "substitutions")


def rescored_numbers(files: "RescoreFiles", chosen: RescoreSettings, resources: ResourceSettings) -> dict[str, Any]:
    """All numbers of the stage; writes the files that were asked for."""
    return _numbers(files, chosen, resources.threads, lambda name, how: DividedModel(name, resources, how))


def chosen_by_weights(
    files: "RescoreFiles", settings: RescoringSettings, resources: ResourceSettings
) -> dict[str, Any]:
    """Write the choice among lists without references, by the weights of an earlier report; returns what was done.

    Raises ``SpeechError`` where the file holds no weights, or those of a source model that the settings do not name.
    """
    weights = _read_weights(str(files.weights))
    if (SOURCE in weights) != (settings.source_model is not None):
        raise SpeechError(f"{files.weights!r} was made with another rescoring.source_model; give the same one")
    lists = read_nbest(files.nbest, settings.hypotheses_at_most, measured=False)
    tables = [hypothesis_table(lists, measured=False)]
    expected = files.vocabulary_hash or expected_vocabulary(lists)
    for name, source in ((LM, str(files.model)), (SOURCE, settings.source_model)):
        if source is not None:
            own = name == LM or kind_of_model(source) == "causal_lm"
            precision = settings.precision if own else "auto"
            model = DividedModel(source, resources, precision)
            if name == LM:
                check_vocabulary(model.vocabulary_hash, expected, source)
            tables = with_language_model(tables, model, name)
    (table,) = tables
    chosen, first = table.chosen_texts(weights), table.chosen_texts({})
    _write_choice(str(files.output), chosen)
    return {
        "utterances": len(lists),
        "empty_lists": len(lists) - len(chosen),
        "changed": sum(chosen[name] != text for name, text in first.items()),
        "hypotheses": table.hypothesis_count,
        **{SHOWN_NAMES[name]: abs(weight) if name == SOURCE else weight for name, weight in weights.items()},
    }


def _read_weights(path: str) -> dict[str, float]:
    """The weights of an earlier report by feature."""
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))["measured"]
        weights = {name: finite_number(found.get(shown)) for name, shown in SHOWN_NAMES.items()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        weights = {}
    if weights.get(LM) is None:
        raise SpeechError(f"{path!r} holds no weights; give the report of 'palimpsest rescore' with a model")
    return {name: -weight if name == SOURCE else weight for name, weight in weights.items() if weight is not None}


def _write_choice(path: str, chosen: Mapping[str, str]) -> None:
    records = ({"utterance_id": name, "text": text} for name, text in chosen.items())
    write_lines(path, (json.dumps(record, ensure_ascii=False) for record in records), private=True)


def _numbers(files: "RescoreFiles", chosen: RescoreSettings, threads: int, open_model: OpenModel) -> dict[str, Any]:
    settings, intervals = chosen.rescoring, chosen.word_errors
    test = read_nbest(files.nbest, settings.hypotheses_at_most)
    dev = read_nbest(str(files.dev), settings.hypotheses_at_most)
    if files.references:
        test = complete_lists(test, read_references(files.references))
    references = {nbest.utterance_id: nbest.reference for nbest in test}
    # The cheap things that can fail come before the model.
    groups = files.word_groups(references, files.references or files.nbest, intervals)
    overlap = None
    if files.training_text:
        overlap = measure_overlap(references.values(), files.training_text)
        check_overlap(overlap, settings)
    rescored = rescore(test, dev, files.model, settings, open_model, files.vocabulary_hash)
    tuned, table = rescored.tuned, rescored.test
    chosen_texts = table.chosen_texts(tuned.weights if tuned else {})
    errors = files.count(references, chosen_texts, groups, listing_beside(files.output))
    baseline = count_errors(references, table.chosen_texts({}), groups)
    bonus_alone = count_errors(references, table.chosen_texts(rescored.tuned_bonus.weights), groups)
    if files.output:
        _write_choice(files.output, chosen_texts)
    measured = measure_errors(errors, intervals)
    sampling = (intervals.bootstrap_samples, intervals.confidence, intervals.seed)
    of_baseline, of_bonus = measure_errors(baseline, intervals), measure_errors(bonus_alone, intervals)
    differences = {
        "difference_to_baseline": paired_difference(errors, baseline, *sampling),
        "difference_to_insertion_bonus_alone": paired_difference(errors, bonus_alone, *sampling),
    }
    weights: dict[str, Any] = tuned.shown() if tuned else {"lm_weight": None, "insertion_bonus": None}
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
        "oracle_wer": table.oracle_error_count() / int(table.reference_words.sum()),
        "best_first_share": table.best_first_share(),
        **{name: value for name, (value, *_) in differences.items()},
        **{f"{name}_ci": None if low is None else [low, high] for name, (_, low, high) in differences.items()},
        **measured,
        "empty_lists": sum(not group for group in table.hypotheses),
        "hypotheses": table.hypothesis_count,
        "dev": _of_dev(rescored),
        "dev_in_test": len({nbest.utterance_id for nbest in dev} & references.keys()),
        "overlap": overlap,
        **rescored.numbers,
        "threads": threads,
    }


def _of_dev(rescored: RescoredLists) -> dict[str, Any]:
    dev, tuned = rescored.dev, rescored.tuned
    words = int(dev.reference_words.sum())
    alone = {
        "utterances": len(dev),
        "words": words,
        "empty_references": dev.empty_references,
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


def rescored_lines(measured: dict[str, Any]) -> list[str]:
    """The result as a short table."""
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
