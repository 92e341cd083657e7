"""Log-probabilities of the lines of a text under a language model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from tasks.language_model.language_models import LanguageModel


@dataclass(frozen=True)
class LineScores:
    """Scores of the lines that have a word, in order."""

    log_probability: np.ndarray
    """Sum over the targets of a line, its words and its end (S,), in nats."""
    targets: np.ndarray
    """Number of targets (S,)."""
    of_targets: np.ndarray
    """Log-probabilities of all targets, line after line (N,), in nats."""
    lines: np.ndarray
    """Index of each scored line among the given lines (S,), from 0; a line without a word has no score."""

    @property
    def means(self) -> np.ndarray:
        """Mean log-probability of a target (S,), in nats."""
        return self.log_probability / self.targets


def score_lines(model: "LanguageModel", lines: Sequence[str]) -> LineScores:
    """Score each line by itself. Raises ``CorpusError`` if no line has a word."""
    from tasks.language_model.evaluation.reference_text import reference_text_of

    text = reference_text_of(lines, "lines of the audit")
    values = model.score_text(lines)[0].log_probability
    sums = np.bincount(text.sentence, weights=values, minlength=text.sentences)
    counts = np.bincount(text.sentence, minlength=text.sentences)
    return LineScores(sums, counts, values, text.lines - 1)


Form = TypeVar("Form")


def score_references(model: "LanguageModel", sentences: Mapping[Form, Sequence[str]]) -> dict[Form, np.ndarray]:
    """Log-probabilities of sentences by form, in nats; the common prefix of a form is read once."""
    from tasks.language_model.normalisation import normalise

    groups = {form: [tuple(normalise(line)) for line in lines] for form, lines in sentences.items()}
    # Names may become equal by normalisation; each distinct sentence is scored once.
    distinct = [list(dict.fromkeys(group)) for group in groups.values()]
    found = {}
    for (form, group), different, scores in zip(groups.items(), distinct, model.score_sentences(distinct), strict=True):
        by_words = dict(zip(different, scores.tolist(), strict=True))
        found[form] = np.array([by_words[words] for words in group])
    return found
