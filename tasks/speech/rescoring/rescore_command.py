"""Choose among a recogniser's hypotheses with a language model: rescoring of n-best lists.

The lists are JSON lines of any recogniser, plain or compressed, or as ESPnet, Kaldi, NeMo and others
write them:

  {"utterance_id", "reference", "hypotheses": [{"text", "score"}]}

The language model is a folder that palimpsest wrote, or a causal model of Hugging Face. That is a
folder, a package or a name on the hub. The language model, each word and each unknown word have a weight. The weights
are tuned on the lists of --dev and applied to the lists of --nbest, once. The report compares the
result with the recogniser's own choice, with a tuned insertion bonus alone, and with the best
hypothesis of every list (oracle). Rates in the report are shares: 0.2 is 20 %.

--weights takes the weights from the report of an earlier 'palimpsest rescore', instead of --dev.
The lists then need no reference. The choice is written to --output, and nothing is measured.

examples:
  palimpsest rescore --nbest test.jsonl.gz --dev dev.jsonl.gz --model models/adapted --report -
  palimpsest rescore --nbest new.jsonl --weights report.json --model models/adapted --output best.jsonl
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from tasks.command import StageCommand
from tasks.corpora.text_lines import finite_number, write_lines
from tasks.errors import ParameterError, SpeechError
from tasks.options import READ, WRITE
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.resources import ResourceSettings
from tasks.speech.rescoring.nbest_lists import NbestList, read_nbest
from tasks.speech.rescoring.settings import RescoreSettings
from tasks.speech.rescoring.tuning import (
    BONUS,
    LM,
    UNKNOWN,
    HypothesisTable,
    TunedWeights,
    Weights,
    axes_of,
    hypothesis_table,
    tune,
    with_language_model,
)  # fmt: skip
from tasks.speech.word_errors.error_report import error_warnings, measure_errors, shown_rate
from tasks.speech.word_errors.references import read_references
from tasks.speech.word_errors.word_error_rate_command import CELL, FusedFiles
from tasks.speech.word_errors.word_errors import count_errors, paired_difference_over_seeds, refuse_unknown_ids

SUMMARY = "choose among a recogniser's hypotheses with a language model"
_RATES = ("wer", "wer_ci", "insertions", "deletions", "substitutions")


class RescoreFiles(FusedFiles):
    """The lists, and the file for the choice."""

    nbest: Annotated[str, READ]
    """n-best lists of the test set"""
    dev: Annotated[str | None, READ] = None
    """n-best lists to tune the weights on"""
    weights: Annotated[str | None, READ] = None
    """report of an earlier rescoring with its weights, instead of --dev; the lists then need no references"""
    references: Annotated[str | None, READ] = None
    """manifest of the test set; an utterance without a list counts as deleted"""
    output: Annotated[str | None, WRITE] = None
    """file for the chosen hypotheses (JSON lines), private; their aligned errors go to a second file, with the ending
    .errors.txt"""


def rescore(settings: RescoreSettings, files: RescoreFiles, cell: Cell, resources: ResourceSettings) -> Report:
    """Tune the weights, choose hypotheses, count errors and print the result."""
    if bool(files.dev) == bool(files.weights):
        raise ParameterError("give --dev to tune weights on, or --weights FILE that has them, and not both")
    files.check_model()
    return (_chosen_by_weights if files.weights else _measured)(files, settings, resources)


def _scored(
    tables: list[HypothesisTable], model: str, settings: RescoreSettings, resources: ResourceSettings
) -> list[HypothesisTable]:
    """The tables with the scores of the language model; ``ModelError`` if it cannot be read."""
    from tasks.language_model.divided_model import DividedModel

    return with_language_model(tables, DividedModel(model, resources, settings.rescoring.precision))


def _chosen_by_weights(files: RescoreFiles, settings: RescoreSettings, resources: ResourceSettings) -> Report:
    """Choose among lists without references, by the weights of an earlier report, and write the choice.

    Raises ``SpeechError`` if the file has no weights, ``ParameterError`` for options that measure something.
    """
    for name in ("references", "sidecar", "counts", "training_text"):
        if getattr(files, name):
            raise ParameterError(f"--{name.replace('_', '-')} has no use with --weights, which measures nothing")
    if not (files.model and files.output):
        raise ParameterError("--weights needs --model, which chooses, and --output, where the choice goes")
    try:
        report = json.loads(Path(str(files.weights)).read_text(encoding="utf-8"))["measured"]
        found = {name: finite_number(report.get(name)) for name in (LM, BONUS, UNKNOWN)}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        found = {}
    weights = {name: weight for name, weight in found.items() if weight is not None}
    if LM not in weights:
        raise SpeechError(f"{files.weights!r} holds no weights; give the report of 'palimpsest rescore' with a model")
    lists = read_nbest(files.nbest, settings.rescoring.hypotheses_at_most, measured=False)
    (table,) = _scored([hypothesis_table(lists, measured=False)], files.model, settings, resources)
    chosen, first = _written_choice(files.output, table, weights), table.chosen_texts({})
    changed, empty = sum(chosen[name] != text for name, text in first.items()), len(lists) - len(chosen)
    shown = f"{len(lists):,} utterances, {changed:,} with another choice than the recogniser's"
    done = Report({"utterances": len(lists), "empty_lists": empty, "changed": changed, **weights}, shown=shown)
    if empty:
        done.warn(f"{empty} lists hold no hypothesis; their utterances are left out of the choice")
    return done


def _written_choice(path: str | None, table: HypothesisTable, weights: Weights) -> dict[str, str]:
    """The chosen text of each utterance, written to a private file if there is a path."""
    chosen = table.chosen_texts(weights)
    if path:
        records = ({"utterance_id": name, "text": text} for name, text in chosen.items())
        write_lines(path, (json.dumps(record, ensure_ascii=False) for record in records), private=True)
    return chosen


def _test_lists(files: RescoreFiles, at_most: int) -> list[NbestList]:
    """The lists of the test set; with a manifest, one for each of its utterances, empty if there is none.

    Raises ``SpeechError`` if a list is of an utterance that the manifest does not have.
    """
    lists = read_nbest(files.nbest, at_most)
    if not files.references:
        return lists
    references, by_id = read_references(files.references), {nbest.utterance_id: nbest for nbest in lists}
    refuse_unknown_ids(by_id.keys(), references, "n-best lists are of utterances that the references do not have")
    return [
        replace(by_id[name], reference=text) if name in by_id else NbestList(name, text, ())
        for name, text in references.items()
    ]


def _measured(files: RescoreFiles, chosen: RescoreSettings, resources: ResourceSettings) -> Report:
    """Tune on dev, choose on test, and compare with the recogniser's choice; writes the requested files."""
    settings, intervals = chosen.rescoring, chosen.word_errors
    test = _test_lists(files, settings.hypotheses_at_most)
    dev = read_nbest(str(files.dev), settings.hypotheses_at_most)
    references = {nbest.utterance_id: nbest.reference for nbest in test}
    # Cheap steps that can fail come before the model.
    groups = files.word_groups(references, files.references or files.nbest, intervals)
    overlap = files.overlap(references)
    dev_table, table = hypothesis_table(dev, "n-best lists of --dev"), hypothesis_table(test, "n-best lists of --nbest")
    tuned_bonus = tune(dev_table, {BONUS: settings.insertion_bonuses})
    # Without a language model the recogniser's own choice stays.
    tuned: TunedWeights | None = None
    if files.model:
        dev_table, table = _scored([dev_table, table], files.model, chosen, resources)
        tuned = tune(dev_table, axes_of(settings, dev_table))
    weights = tuned.weights if tuned else {}
    texts = _written_choice(files.output, table, weights)
    errors = files.count(references, texts, groups, files.output)
    measured = measure_errors(errors, intervals)
    others = {}
    for name, other_weights in (("baseline", {}), ("insertion_bonus_alone", tuned_bonus.weights)):
        other = count_errors(references, table.chosen_texts(other_weights), groups)
        others[name] = measure_errors(other, intervals)
        sampling = intervals.bootstrap_samples, intervals.confidence, intervals.seed
        difference, low, high = paired_difference_over_seeds([(errors, other)], *sampling)
        measured[f"difference_to_{name}"] = difference
        measured[f"difference_to_{name}_ci"] = None if low is None else [low, high]
    measured = {
        **measured,
        LM: None,
        BONUS: None,
        **weights,
        "baseline": {key: others["baseline"][key] for key in (*_RATES, "character_error_rate", "masked_words")},
        "insertion_bonus_alone": {key: others["insertion_bonus_alone"][key] for key in _RATES} | tuned_bonus.weights,
        **table.facts(),
        "dev": _of_dev(dev_table, tuned, tuned_bonus),
        "dev_in_test": len({nbest.utterance_id for nbest in dev} & references.keys()),
        "overlap": overlap,
    }
    report = Report(measured, error_warnings(measured), intervals.seed, _shown(measured))
    if shared := measured["dev_in_test"]:
        report.warn(f"{shared} utterances of the test set are among those that the weights were tuned on")
    return report


def _shown(measured: Mapping[str, Any]) -> str:
    """The word error rates as a short table."""
    used = "; ".join(f"{name} {measured[name]:g}" for name in (LM, BONUS, UNKNOWN) if measured.get(name) is not None)
    lines = [
        f"recogniser alone        {shown_rate(measured['baseline'])}",
        f"insertion bonus alone   {shown_rate(measured['insertion_bonus_alone'])}",
        *([f"with language model     {shown_rate(measured)}, weights {used}"] if used else []),
        f"best of each list       {100 * measured['oracle_wer']:.2f} %",
    ]
    if ends := used and measured["difference_to_baseline_ci"]:
        change = f"{100 * measured['difference_to_baseline']:+.2f} [{100 * ends[0]:+.2f}, {100 * ends[1]:+.2f}]"
        lines.append(f"difference in points from the recogniser alone to the language model: {change}")
    return "\n".join(lines)


def _of_dev(dev: HypothesisTable, tuned: TunedWeights | None, tuned_bonus: TunedWeights) -> dict[str, Any]:
    return {
        "baseline_wer": dev.wer({}),
        "insertion_bonus_alone_wer": dev.wer(tuned_bonus.weights),
        "wer": dev.wer(tuned.weights if tuned else {}),
        "deviations": tuned.deviation if tuned else {},
        "at_edge_of_grid": tuned.at_edge if tuned else [],
        "grid": tuned.grid(dev.words) if tuned else [],
    }


SECTIONS = {"rescoring": "speech.rescoring", "word_errors": "speech.word_errors"}
COMMAND = StageCommand("rescore", rescore, RescoreSettings, RescoreFiles, SECTIONS, labels=CELL, seed=None)
