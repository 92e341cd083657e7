"""Two runs held against each other, sentence by sentence and utterance by utterance: line numbers, ids and numbers.

The scores lie beside the reports, in ``results/scores``; MLflow holds the sums alone.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.language_model.settings import EvaluationSettings
from tasks.records.cell import Cell
from tasks.records.cells import NO_LANGUAGE_MODEL, score_file, word_error_file

if TYPE_CHECKING:
    import pandas as pd

SCORES = Path("results") / "scores"


@dataclass(frozen=True)
class Comparison:
    """What two runs differ in on the same text or the same speech."""

    value: float | None
    """Of perplexities the ratio B to A, of word error rates the difference B less A in points."""
    low: float | None
    """Lower end of its interval, by paired bootstrap."""
    high: float | None
    frame: "pd.DataFrame"
    """A line for each sentence or utterance (pandas ``DataFrame``), the largest difference first."""

    def apart(self, neutral: float) -> int:
        """-1 where the interval lies below ``neutral``, 1 where above, else 0."""
        if self.low is None or self.high is None:
            return 0
        return -1 if self.high < neutral else 1 if self.low > neutral else 0


def has_scores(cell: Cell, folder: Path = SCORES) -> bool:
    """Whether the scores of its sentences are on this machine."""
    return cell.method != NO_LANGUAGE_MODEL and (folder / score_file(cell)).is_file()


def has_word_errors(cell: Cell, folder: Path = SCORES) -> bool:
    """Whether the errors of its utterances are on this machine."""
    return (folder / word_error_file(cell)).is_file()


def groups_of(first: Cell, second: Cell, folder: Path = SCORES) -> dict[str, str]:
    """Groups of words that the scores of both tell apart, with their names in words."""
    from tasks.language_model.evaluation.sentence_scores import ALL, KNOWN, MASKED_KNOWN, REST_KNOWN, read_scores
    from tasks.results.titles import technique_name

    known = [set(read_scores(folder / score_file(cell))[0].techniques) for cell in (first, second)]
    groups = {ALL: "all words", KNOWN: "words of the vocabulary"}
    for technique in sorted(known[0] & known[1]):
        name = technique_name(technique)
        groups[f"{MASKED_KNOWN}:{technique}"] = f"words that {name} would mask"
        groups[f"{REST_KNOWN}:{technique}"] = f"all that {name} leaves"
    return groups


def sentence_differences(
    first: Cell, second: Cell, group: str, settings: EvaluationSettings, folder: Path = SCORES
) -> Comparison:
    """Perplexities by sentence of run A (``first``) and run B.

    Columns: ``line`` of the test text, ``targets`` (words and the sentence end), ``perplexity_a`` and ``perplexity_b``,
    ``difference`` in nats a target (below 0: B gives the sentence more probability), and ``weight``: nats that the
    sentence adds to the difference of the whole. Sentences without a target of the group are left out. Raises
    ``CorpusError`` where the two were not scored on the same text by the same protocol.
    """
    import numpy as np
    import pandas as pd

    from tasks.language_model.evaluation.bootstrap import paired_ratios
    from tasks.language_model.evaluation.sentence_scores import read_scores

    paths = [folder / score_file(cell) for cell in (first, second)]
    resampling = settings.bootstrap_samples, settings.confidence, settings.seed
    value, low, high = paired_ratios([(paths[1], paths[0])], [group], *resampling)[0]
    scores = [read_scores(path)[0] for path in paths]
    sums = [one.of(group) for one in scores]
    counted = sums[0].targets > 0
    targets = sums[0].targets[counted]
    losses = [-one.log_probability[counted] for one in sums]
    means = [np.exp(np.minimum(loss / targets, 700.0)) for loss in losses]
    frame = pd.DataFrame(
        {
            "line": scores[0].line[counted],
            "targets": targets,
            "perplexity_a": means[0],
            "perplexity_b": means[1],
            "difference": (losses[1] - losses[0]) / targets,
            "weight": losses[1] - losses[0],
        }
    )
    return Comparison(value if math.isfinite(value) else None, low, high, _largest_first(frame))


def utterance_differences(first: Cell, second: Cell, settings: EvaluationSettings, folder: Path = SCORES) -> Comparison:
    """Word errors by utterance of run A (``first``) and run B.

    Columns: ``utterance_id``, ``words`` of the reference, ``errors_a`` and ``errors_b`` with their insertions,
    deletions and substitutions, and ``difference`` in errors. Raises ``SpeechError`` where the two were not measured on
    the same speech.
    """
    import pandas as pd

    from tasks.speech.word_errors.error_counts_file import read_errors
    from tasks.speech.word_errors.word_errors import paired_difference

    errors = [read_errors(folder / word_error_file(cell))[0] for cell in (first, second)]
    resampling = settings.bootstrap_samples, settings.confidence, settings.seed
    value, low, high = paired_difference(errors[1], errors[0], *resampling)
    columns: dict[str, Any] = {"utterance_id": errors[0].utterance_ids, "words": errors[0].words}
    for end, one in zip("ab", errors, strict=True):
        columns[f"errors_{end}"] = one.errors
        for kind in ("insertions", "deletions", "substitutions"):
            columns[f"{kind}_{end}"] = getattr(one, kind)
    frame = pd.DataFrame(columns)
    frame["difference"] = frame["errors_b"] - frame["errors_a"]
    return Comparison(
        100 * value if math.isfinite(value) else None,
        None if low is None else 100 * low,
        None if high is None else 100 * high,
        _largest_first(frame),
    )


def _largest_first(frame: "pd.DataFrame") -> "pd.DataFrame":
    order = frame["difference"].abs().sort_values(ascending=False, kind="stable").index
    return frame.loc[order].reset_index(drop=True)
