"""Rescoring: weights tuned on development lists, frozen, and applied to the test lists once."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tasks.errors import ModelError, SpeechError
from tasks.speech.rescoring.hypothesis_table import (
    LM,
    SOURCE,
    WORD_COUNT,
    HypothesisTable,
    hypothesis_table,
    with_language_model,
)
from tasks.speech.rescoring.language_model_scorer import LanguageModelScorer, open_scorer
from tasks.speech.rescoring.nbest_lists import NbestList
from tasks.speech.rescoring.settings import RescoringSettings
from tasks.speech.rescoring.weight_grid import TunedWeights, axes_of, tune_weights

_HASH_DIGITS = 8


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
    tables = [hypothesis_table(dev), hypothesis_table(test)]
    expected = vocabulary_hash or expected_vocabulary([*dev, *test])
    numbers: dict[str, Any] = {}
    for name, source in ((LM, model), (SOURCE, settings.source_model if model else None)):
        if source is None:
            continue
        scorer = open_scorer(source, settings.precision)
        if name == LM:
            check_vocabulary(scorer, expected, source)
        clock = time.perf_counter()
        tables = with_language_model(tables, scorer, name)
        seconds = time.perf_counter() - clock
        numbers[f"{name}_vocabulary"] = scorer.vocabulary
        numbers[f"{name}_seconds"] = round(seconds, 3)
        numbers[f"{name}_hypotheses_per_second"] = round(sum(table.hypothesis_count for table in tables) / seconds, 1)
    dev_table, test_table = tables
    tuned = tune_weights(dev_table, axes_of(settings, dev_table), settings.refinements) if model else None
    tuned_bonus = tune_weights(dev_table, {WORD_COUNT: settings.insertion_bonuses}, settings.refinements)
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


def expected_vocabulary(lists: Sequence[NbestList]) -> str | None:
    """Hash of the vocabulary that the lists name; ``SpeechError`` where they name several."""
    named = sorted({nbest.vocabulary for nbest in lists if nbest.vocabulary is not None})
    if len(named) > 1:
        raise SpeechError(
            f"the n-best lists name {len(named)} vocabularies ({', '.join(name[:12] for name in named[:4])}); "
            "rescore the lists of one recogniser at a time"
        )
    return named[0] if named else None


def check_vocabulary(scorer: LanguageModelScorer, expected: str | None, model: str) -> None:
    """``ModelError`` where the model's vocabulary is another one than expected; some first digits will do."""
    if expected is None:
        return
    if len(expected) < _HASH_DIGITS:
        raise ModelError(f"vocabulary hash {expected!r} is too short; give {_HASH_DIGITS} digits or more")
    if not scorer.vocabulary.startswith(expected):
        raise ModelError(
            f"model {model!r} has the vocabulary {scorer.vocabulary[:12]}, and the recogniser's partner has "
            f"{expected[:12]}; give the language model that belongs to the recogniser, or make the lists again"
        )
