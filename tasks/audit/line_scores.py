"""How probable a language model finds each line of a text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from tasks.language_model.language_models import LanguageModel


@dataclass(frozen=True)
class LineScores:
    """Of each line that has a word, in their order."""

    log_probability: np.ndarray
    """Sum over its targets, its words and its end (S,), in nats."""
    targets: np.ndarray
    """How many these are (S,)."""
    of_targets: np.ndarray
    """Log-probabilities of all targets, line after line (N,), in nats."""
    lines: np.ndarray
    """Which of the given lines it is (S,), from 0: a line without a word has no score."""

    @property
    def means(self) -> np.ndarray:
        """Of a target (S,), in nats."""
        return self.log_probability / self.targets


def score_lines(model: "LanguageModel", lines: Sequence[str]) -> LineScores:
    """Score lines, each by itself. ``CorpusError`` where no line has a word."""
    from tasks.language_model.evaluation.reference_text import reference_text_of

    text = reference_text_of(lines, "lines of the audit")
    values = model.score_text(lines)[0].log_probability
    sums = np.bincount(text.sentence, weights=values, minlength=text.sentences)
    counts = np.bincount(text.sentence, minlength=text.sentences)
    return LineScores(sums, counts, values, text.lines - 1)


Form = TypeVar("Form")


def score_references(model: "LanguageModel", sentences: Mapping[Form, Sequence[str]]) -> dict[Form, np.ndarray]:
    """Log-probabilities of sentences by form, in nats: what those of a form share at their beginning is read once."""
    from tasks.language_model.normalisation import normalise

    groups = {form: [tuple(normalise(line)) for line in lines] for form, lines in sentences.items()}
    # Names may be one after normalisation; each distinct sentence is scored once.
    distinct = [list(dict.fromkeys(group)) for group in groups.values()]
    found = {}
    for (form, group), different, scores in zip(groups.items(), distinct, model.score_sentences(distinct), strict=True):
        by_words = dict(zip(different, scores.tolist(), strict=True))
        found[form] = np.array([by_words[words] for words in group])
    return found
