"""Rescoring: weights tuned on development lists, frozen, and applied to the test lists once."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tasks.errors import SpeechError
from tasks.speech.rescoring.hypothesis_table import (
    LM,
    SOURCE,
    WORD_COUNT,
    HypothesisTable,
    hypothesis_table,
    with_language_model,
)
from tasks.speech.rescoring.language_model_scorer import has_precision, open_scorer
from tasks.speech.rescoring.nbest_lists import NbestList
from tasks.speech.rescoring.partner_vocabulary import check_vocabulary, expected_vocabulary
from tasks.speech.rescoring.settings import RescoringSettings
from tasks.speech.rescoring.weight_grid import TunedWeights, axes_of, tune_weights


@dataclass(frozen=True)
class RescoredLists:
    """Which hypotheses were chosen, and by which weights."""

    chosen: Mapping[str, str]
    """By utterance id."""
    first_best: Mapping[str, str]
    """The recogniser's own."""
    bonus_alone: Mapping[str, str]
    """With an insertion bonus tuned alone, and no language model."""
    tuned: TunedWeights | None
    """``None`` without a language model."""
    tuned_bonus: TunedWeights
    dev: HypothesisTable
    test: HypothesisTable
    numbers: Mapping[str, Any]
    """What was done, for the report."""


def rescore(
    test: Sequence[NbestList],
    dev: Sequence[NbestList],
    model: str | None,
    settings: RescoringSettings,
    vocabulary_hash: str | None = None,
) -> RescoredLists:
    """Tune on ``dev`` and choose among ``test`` by the language model of a folder or a name.

    Without a ``model`` the recogniser's own choice stays, and an insertion bonus alone is tuned beside it. Raises
    ``ModelError`` where a model cannot be read, or where its vocabulary is not the one that the lists or
    ``vocabulary_hash`` name.
    """
    tables = [hypothesis_table(dev, "n-best lists of --dev"), hypothesis_table(test, "n-best lists of --nbest")]
    expected = vocabulary_hash or expected_vocabulary([*dev, *test])
    numbers: dict[str, Any] = {}
    for name, source in ((LM, model), (SOURCE, settings.source_model if model else None)):
        if source is None:
            continue
        # What is subtracted may be of a kind that has one precision only, such as LODR's n-gram model.
        scorer = open_scorer(source, settings.precision if name == LM or has_precision(source) else "auto")
        if name == LM:
            check_vocabulary(scorer.vocabulary, expected, source)
        clock = time.perf_counter()
        tables = with_language_model(tables, scorer, name)
        seconds = time.perf_counter() - clock
        numbers[f"{name}_vocabulary"] = scorer.vocabulary
        numbers[f"{name}_seconds"] = round(seconds, 3)
        numbers[f"{name}_hypotheses_per_second"] = round(sum(table.hypothesis_count for table in tables) / seconds, 1)
    dev_table, test_table = tables
    tuned = tune_weights(dev_table, axes_of(settings, dev_table), settings.resamples) if model else None
    tuned_bonus = tune_weights(dev_table, {WORD_COUNT: settings.insertion_bonuses}, settings.resamples)
    return RescoredLists(
        chosen=test_table.chosen_texts(tuned.weights if tuned else {}),
        first_best=test_table.chosen_texts({}),
        bonus_alone=test_table.chosen_texts(tuned_bonus.weights),
        tuned=tuned,
        tuned_bonus=tuned_bonus,
        dev=dev_table,
        test=test_table,
        numbers=numbers,
    )


def complete_lists(lists: Sequence[NbestList], references: Mapping[str, str]) -> list[NbestList]:
    """The lists with the references of a manifest; an utterance that has no list gets an empty one.

    Raises ``SpeechError`` where a list is of an utterance that the manifest does not have.
    """
    by_id = {nbest.utterance_id: nbest for nbest in lists}
    unknown = sorted(by_id.keys() - references.keys())
    if unknown:
        shown = ", ".join(map(repr, unknown[:10])) + (", ..." if len(unknown) > 10 else "")
        raise SpeechError(
            f"{len(unknown)} of {len(lists)} n-best lists are of utterances that the references do not have: {shown}; "
            "give the references of this test set"
        )
    return [
        replace(by_id[name], reference=text) if name in by_id else NbestList(name, text, ())
        for name, text in references.items()
    ]
