"""Test whether a conclusion about a text still holds after masking and filling.

The conclusion is that a label of each line, such as its sentiment, is related to the main language
of the line. The main language is the one that most words are in. The command tests this on the text
(--input), and on each masked or filled version of it (--versions), line by line.

The report has for each of them:

- chi-squared of labels by main language.
- Cramer's V, the strength of the relation, with its interval.
- z of each pair of labels: the difference between their shares of lines in the first language.
- Macro F1 of a classifier of letters. It is trained on the version, and tested on lines of the text
  itself that it has not read. Each line is tested once.

A verdict is undecided if the limit of significance lies inside the interval of V. Other lines of
the same kind could then give the other verdict.

As perplexity does, these figures measure how useful a version is. The report has numbers and
labels, and no line of the text.

Example:
  palimpsest conclusion --pair mr,en --input tweets.txt --labels sentiment.txt --versions masked.txt filled.txt
"""

import math
import sys
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from tasks.command import StageCommand, StageFiles
from tasks.errors import CorpusError
from tasks.languages.settings import ConclusionSettings
from tasks.options import READ
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.resources import ResourceSettings

if TYPE_CHECKING:
    import numpy as np

SUMMARY = "test whether a conclusion about languages and labels holds after masking and filling"
_FOLDS = 5
"""Number of folds of the cross-validation of the classifier."""
_LETTERS, _FEWEST, _MOST = (1, 4), 2, 50


class ConclusionFiles(StageFiles):
    """A labelled text, and its masked or filled versions."""

    pair: str
    """languages of the text as ISO 639-1 codes, such as mr,en; the share of the first one is tested"""
    input: Annotated[str, READ]
    """the text, one sentence a line"""
    labels: Annotated[str, READ]
    """labels of the lines, one a line"""
    versions: Annotated[list[str], READ] = Field(default_factory=list)
    """masked and filled versions of the same lines"""
    language_labels: Annotated[str | None, READ] = None
    """lines with the language of each word, to learn from, as for 'palimpsest languages --labels'"""


def conclusion(settings: ConclusionSettings, files: ConclusionFiles, cell: Cell, resources: ResourceSettings) -> Report:
    """Test the text and each version; raises ``CorpusError`` for different numbers of lines, or a single label."""
    import numpy as np

    from tasks.corpora.text_lines import read_corpus
    from tasks.language_model.evaluation.bootstrap import resample_counts
    from tasks.languages.labelled_model import LabelledModel
    from tasks.languages.labelled_words import read_labelled_words
    from tasks.languages.segmentation import divider
    from tasks.languages.word_languages import WordLanguages
    from tasks.languages.word_lists import codes_of

    labels = [label.strip() for label in read_corpus(files.labels)]
    names = sorted(set(labels))
    if len(names) < _FEWEST:
        raise CorpusError(f"labels {files.labels!r}: all lines have one label; a relation needs {_FEWEST} and more")
    if len(names) > _MOST:
        # The report contains the labels, so they must not be a text given by mistake.
        raise CorpusError(f"labels {files.labels!r}: {len(names):,} different labels; give at most {_MOST}")
    texts = {path: read_corpus(path) for path in dict.fromkeys([files.input, *files.versions])}
    for path, lines in texts.items():
        # If a text was filled several times, the first copy is tested.
        if len(lines) % len(labels) or (path == files.input and len(lines) != len(labels)):
            raise CorpusError(
                f"text {path!r} has {len(lines):,} lines and labels {files.labels!r} {len(labels):,}; give one label a "
                "line, and versions of the same text"
            )
    codes = codes_of(files.pair)
    divide = divider(codes)
    labelled = read_labelled_words(files.language_labels, codes) if files.language_labels else []
    label = np.array([names.index(each) for each in labels])
    resamples = np.concatenate(list(resample_counts(len(labels), settings.bootstrap_samples, settings.seed)))
    fold = np.random.default_rng(settings.seed).permutation(len(labels)) % _FOLDS
    found: dict[str, dict[str, Any]] = {}
    first: tuple[np.ndarray, np.ndarray] | None = None
    for path, lines in texts.items():
        lines = lines[: len(labels)]
        words = [divide(line) for line in lines]
        plain = WordLanguages(codes, words, names=True)
        model = LabelledModel(plain, labelled) if labelled else plain
        main = np.array([_is_mainly(codes[0], line.languages) for line in model.tag(words)])
        predicted = _predictions(lines, label, texts[files.input], fold)
        of_label = np.eye(len(names))[label]
        tables = resamples @ (of_label * main[:, None]), resamples @ of_label  # (R, L) each
        drawn = _v(*tables)
        f1 = _drawn_f1(predicted, label, len(names), resamples)
        outcome = _tested(main, label, names, settings.level)
        outcome |= {"macro_f1": float(f1[0])}
        ends = {"cramers_v": drawn, "macro_f1": f1[1:]}
        if first is not None:
            base = found[files.input]
            ends |= {"cramers_v_change": drawn - first[0], "macro_f1_change": f1[1:] - first[1]}
            outcome |= {f"{name}_change": outcome[name] - base[name] for name in ("cramers_v", "macro_f1")}
            outcome["same_verdict"] = outcome["related"] == base["related"]
        first = first or (drawn, f1[1:])
        tail = 50 * (1 - settings.confidence)
        ends |= {f"z.{pair}": values for pair, values in _z(*tables, names).items()}
        intervals = {name: np.nanpercentile(values, [tail, 100 - tail]).tolist() for name, values in ends.items()}
        outcome["z_ci"] = {pair: intervals.pop(f"z.{pair}") for pair in outcome["z"]}
        low, high = intervals["cramers_v"]
        outcome["decided"] = not low <= outcome["cramers_v_limit"] <= high
        found[path] = outcome | {f"{name}_ci": interval for name, interval in intervals.items()}
        print(_shown(Path(path).name, found[path]), file=sys.stderr)
    return Report(seed=settings.seed).measure(labels=names, lines=len(labels), by_text=found)


def _is_mainly(language: str, languages: Sequence[str | None]) -> bool:
    from tasks.languages.mixing import spoken

    words = spoken(languages)
    return 2 * words.count(language) > len(words)


def _tested(main: "np.ndarray", label: "np.ndarray", names: Sequence[str], level: float) -> dict[str, Any]:
    """Chi-squared (Pearson, without correction), Cramer's V, and z of each pair of shares."""
    import numpy as np
    from scipy.stats import chi2

    lines = np.bincount(label, minlength=len(names))
    share = np.bincount(label, main, len(names)) / lines
    v = float(_v(share[None] * lines, lines[None])[0])
    statistic = v**2 * len(label)
    probability = float(chi2.sf(statistic, len(names) - 1))
    z = {pair: float(value) for pair, (value,) in _z((share * lines)[None], lines[None], names).items()}
    return {
        "main_language_share": dict(zip(names, share.tolist(), strict=True)),
        "chi_squared": statistic,
        "degrees_of_freedom": len(names) - 1,
        "probability": probability,
        "related": probability < level,
        "cramers_v": v,
        "cramers_v_limit": math.sqrt(float(chi2.isf(level, len(names) - 1)) / len(label)),
        "z": {pair: None if math.isnan(value) else value for pair, value in z.items()},
    }


def _v(hits: "np.ndarray", lines: "np.ndarray") -> "np.ndarray":
    """Cramer's V of tables with two columns, from the first column (R, L) and the sums of both (R, L). It is 0 where no
    line, or every line, is in the first column."""
    import numpy as np

    whole = lines.sum(axis=1, keepdims=True)
    share = hits.sum(axis=1, keepdims=True) / whole
    expected = np.maximum(lines * share * (1 - share), 1e-12)
    squares = np.where(lines > 0, (hits - lines * share) ** 2 / expected, 0)
    return np.asarray(np.sqrt(squares.sum(axis=1) / whole[:, 0]))


def _z(hits: "np.ndarray", lines: "np.ndarray", names: Sequence[str]) -> dict[str, "np.ndarray"]:
    """z of each pair of labels: the difference of their shares, by their pooled variance, (R,); NaN where that is 0."""
    import numpy as np

    found = {}
    for one, other in combinations(range(len(names)), 2):
        pooled = (hits[:, one] + hits[:, other]) / (lines[:, one] + lines[:, other])
        variance = pooled * (1 - pooled) * (1 / lines[:, one] + 1 / lines[:, other])
        difference = hits[:, one] / lines[:, one] - hits[:, other] / lines[:, other]
        deviation = np.sqrt(np.where(variance > 0, variance, np.nan))
        found[f"{names[one]} - {names[other]}"] = difference / deviation
    return found


def _predictions(lines: Sequence[str], label: "np.ndarray", text: Sequence[str], fold: "np.ndarray") -> "np.ndarray":
    """Predict a label for each line of ``text``, with logistic regression over letters trained on the other folds."""
    import numpy as np
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    found = np.zeros_like(label)
    for number in range(fold.max() + 1):
        tested, read = np.flatnonzero(fold == number), np.flatnonzero(fold != number)
        letters = TfidfVectorizer(analyzer="char_wb", ngram_range=_LETTERS, min_df=2, sublinear_tf=True)
        seen = letters.fit_transform([lines[line] for line in read.tolist()])
        classifier = LogisticRegression(C=4.0, max_iter=300).fit(seen, label[read])
        found[tested] = classifier.predict(letters.transform([text[line] for line in tested.tolist()]))
    return found


def _drawn_f1(predicted: "np.ndarray", label: "np.ndarray", labels: int, resamples: "np.ndarray") -> "np.ndarray":
    """Macro F1 of the lines, and of each resample, (1 + R,)."""
    import numpy as np

    is_label, is_found = np.eye(labels)[label], np.eye(labels)[predicted]
    weights = np.concatenate([np.ones((1, len(label))), resamples])
    hits, sizes = weights @ (is_label * is_found), weights @ is_label + weights @ is_found
    return np.asarray((2 * hits / np.maximum(sizes, 1)).mean(axis=1))


def _shown(name: str, tested: dict[str, Any]) -> str:
    ends = tested["cramers_v_ci"]
    relation = "related" if tested["related"] else "NOT related"
    relation += "" if tested["decided"] else f" but not decided (limit {tested['cramers_v_limit']:.3f})"
    return (
        f"{name}: chi-squared {tested['chi_squared']:.1f} ({tested['degrees_of_freedom']} df), V "
        f"{tested['cramers_v']:.3f} [{ends[0]:.3f}, {ends[1]:.3f}], {relation}; macro F1 {tested['macro_f1']:.3f}"
    )


COMMAND = StageCommand(
    name="conclusion",
    stage=conclusion,
    settings=ConclusionSettings,
    files=ConclusionFiles,
    section="conclusion",
    labels=("dataset",),
    seed=None,
)
