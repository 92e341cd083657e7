"""Exposure of canaries in a twin of a filler that was tuned on the corpus.

The twin is tuned as the filler was, on the masked text with masked canaries. A sentence is scored by its drawn words:
the sum of their log-probabilities, each masked alone (a pseudo-log-likelihood, Salazar et al. 2020), less the sum under
the base. Words of several tokens are ignored. A causal filler is scored by its probability of the sentence.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tasks.audit.canaries import Canaries
from tasks.audit.exposure import Form, exposure_figures, sentences_by_form
from tasks.audit.figure import Figure
from tasks.audit.line_scores import score_references
from tasks.audit.settings import AuditSettings
from tasks.corpora.text_lines import write_lines
from tasks.corpora.words import fold
from tasks.filling.fillers.tune_filler import AnyTuning, TuneFiles, tune_filler
from tasks.filling.masked_lm.candidate_words import candidate_words
from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel
from tasks.filling.masked_lm.places import OpenPlace, candidate_log_probabilities
from tasks.filling.opened_filler import OpenedFiller
from tasks.language_model.opening import open_language_model
from tasks.records.cell import Cell
from tasks.settings.resources import ResourceSettings

_REFERENCES = 1023
"""A masked language model reads a sentence once for each of its words."""
_PLACES_AT_ONCE = 2048
_HELD_OUT = 1e-9
"""A share that holds out one sentence. Held-out sentences leave with their repetitions, canaries included."""


def filler_exposure(
    tuning: AnyTuning,
    files: TuneFiles,
    masked: Sequence[str],
    planted: Sequence[str],
    canaries: Canaries,
    settings: AuditSettings,
    resources: ResourceSettings,
) -> dict[str, Figure]:
    """``exposure_filler`` for names; other families and counts are named as for language models.

    ``masked``: the lines that the filler was tuned on; ``planted``: masked canaries, repeated as in the text. ``files``
    names the twin's text and folder.
    """
    chance = random.Random(f"{settings.seed} filler")
    placed = [*enumerate(masked), *((chance.random() * len(masked), line) for line in planted)]
    write_lines(files.input, [line for _, line in sorted(placed)], private=True)
    tune_filler(tuning.model_copy(update={"held_out_share": _HELD_OUT}), files, Cell(), resources)
    known = {form: lines[:_REFERENCES] for form, lines in canaries.references.items()}
    without_coins = replace(canaries, planted=[each for each in canaries.planted if not each.is_coin], references=known)

    sentences = sentences_by_form(without_coins)
    after, before = (
        score_references(open_language_model(folder), sentences)
        if tuning.kind == "causal_lm"
        else masked_scores(OpenedFiller(folder, resources.threads).masked, sentences)
        for folder in (files.output, files.base)
    )
    gain = {form: after[form] - before[form] for form in sentences}
    found = exposure_figures(gain, without_coins, settings, "probability in the tuned filler, less that in its base")
    return {name.replace("exposure", "exposure_filler"): figure for name, figure in found.items()}


def masked_scores(model: MaskedLanguageModel, sentences: Mapping[Form, Sequence[str]]) -> dict[Form, np.ndarray]:
    """Sums of log-probabilities (S,) in nats of the words in which a form's sentences differ, each masked alone."""
    candidates = candidate_words(model.tokenizer, name=model.name)
    index = {fold(word): number for number, word in enumerate(candidates.words)}
    found = {}
    for form, lines in sentences.items():
        table = np.array([line.split(" ") for line in lines])  # (S, words): sentences of a form have equally many
        drawn = np.flatnonzero((table != table[0]).any(axis=0)).tolist()
        targets = np.array([[index.get(fold(words[place]), -1) for place in drawn] for words in table.tolist()])
        allowed = np.isin(np.arange(len(candidates)), targets)
        column = np.cumsum(allowed) - 1
        places = [
            OpenPlace((" ".join([*words[:place], ""]), " ".join(["", *words[place + 1 :]])), 0)
            for words in table.tolist()
            for place in drawn
        ]
        sums = np.zeros(len(places))
        for begin in range(0, len(places), _PLACES_AT_ONCE):
            some = slice(begin, begin + _PLACES_AT_ONCE)
            scores = candidate_log_probabilities(model, candidates, allowed, places[some])  # (N, A)
            target = targets.ravel()[some]
            sums[some] = np.where(target >= 0, scores[np.arange(len(scores)), column[target]], 0.0)
        found[form] = sums.reshape(len(lines), len(drawn)).sum(axis=1)
    return found
