"""All measures of an experiment: one row each, read by the summary, its tables, the report page, MLflow and the app.

A further measure of a stage that is there takes two steps: the stage writes it under ``measured`` of its report, and
a row of ``MEASURES`` says what it is called, where it stands, which direction is better, and in which views it belongs.
Another package adds rows without a change here, by an entry point of the group ``palimpsest.measures`` that names a
``Measure`` or a sequence of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import Any, Literal

from tasks.errors import ParameterError
from tasks.results.summary.estimate import Estimate, direction, estimate

ENTRY_POINTS = "palimpsest.measures"
TERMINAL, DOCUMENT, PAGE, APP = "terminal", "document", "page", "app"
"""Views with a table of the measure: the terminal, ``summary.md``, the report page, the app."""
MLFLOW, MLFLOW_TABLE = "mlflow", "mlflow table"
"""A metric of every run, and a column of MLflow's table of runs."""
BELOW, ABOVE, OTHER_PROTOCOL = "▼", "▲", "‡"
Step = Literal["mask", "fill", "perplexity", "word_error_rate", "rescore", "compared"]
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Reference:
    """What the numbers of a measure are held against, by a column of the summary that has an interval."""

    column: str
    """A ratio or a difference, such as ``ratio_to_oracle``."""
    name: str
    neutral: float = 1.0
    """The column's value where there is no difference: 1 of a ratio, 0 of a difference."""
    marks: bool = False
    """Whether ``▼`` and ``▲`` beside the number are about this one."""
    full_name: str = ""
    """Where ``name`` says too little by itself."""
    sides: tuple[str, str] = ("below", "above")
    """What the two marks say."""

    def way(self, rows: Sequence[Row]) -> int:
        """-1 where the interval lies below ``neutral``, 1 where above, else 0."""
        return direction(rows, self.column, self.neutral)

    def said(self, way: int) -> str:
        """``below Baseline1``, ``not told apart from Baseline1``."""
        return f"{ {-1: self.sides[0], 0: 'not told apart from', 1: self.sides[1]}[way] } {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One number of a cell: a column of ``summary.json``, and its name in MLflow."""

    name: str
    title: str = ""
    """For people, with the unit that is shown."""
    heading: str = ""
    """Above a table of its own; the title where there is none."""
    step: Step
    """The report that it stands in: of masking, filling, evaluation or recognition; ``rescore``: of
    recognition by n-best lists alone; ``compared``: the summary computes it from the scores of two cells."""
    field: str = ""
    """Where it stands under ``measured``; the name where there is none. Dots lead into records, and ``{technique}``
    stands for the name of the cell's technique: references have such a number under every technique."""
    kind: Literal["number", "number?", "count", "count?"] = "number?"
    """What stands there; with ``?`` it may be null."""
    interval: str | None = None
    """Where its interval stands; ``None``: it has none. ``compared`` measures have one always."""
    share: bool = False
    """Whether it is a share or a difference of shares, shown in per cent or points."""
    digits: int = 1
    """Decimals that are shown."""
    app_digits: int | None = None
    """Decimals in the app, where that has room for more."""
    better: Literal["lower", "higher"] | None = None
    references: tuple[Reference, ...] = ()
    protocol: bool = False
    """Whether only numbers of the same evaluation protocol compare."""
    over_seeds: bool = False
    """Whether mean and deviation over the seeds of a condition are part of the summary and of MLflow."""
    interval_over_seeds: bool = False
    """Whether several seeds are shown by their interval rather than by their deviation."""
    logarithmic: bool = False
    """Whether plots have a logarithmic axis."""
    views: frozenset[str] = frozenset({TERMINAL, DOCUMENT, PAGE, APP, MLFLOW})

    @property
    def of_speech(self) -> bool:
        """Whether the recogniser alone, without a language model, has it too."""
        return self.step in ("word_error_rate", "rescore") or self.name.startswith("wer_")

    @property
    def by_technique(self) -> bool:
        """Whether references, which belong to no technique, have a number under each."""
        return "{technique}" in self.field

    @property
    def reference(self) -> Reference | None:
        """What the marks are about."""
        return next((reference for reference in self.references if reference.marks), None)

    @property
    def meaning(self) -> str:
        """What the marks say, as a part of a legend."""
        found = self.reference
        if found is None:
            return ""
        said = f"{BELOW} below, {ABOVE} above {found.full_name or found.name}: the interval"
        if found.column == self.name:
            return f"{said} excludes it"
        return f"{said} of the paired {'ratio' if found.neutral else 'difference'} excludes {found.neutral:g}"

    def estimate(self, rows: Sequence[Row]) -> Estimate | None:
        """The number of a condition, from the rows of its seeds, in the unit that is shown."""
        found = estimate(rows, self.name) if rows else None
        return found.times(100) if found is not None and self.share else found

    def mark(self, rows: Sequence[Row]) -> str:
        """``▼`` or ``▲`` where the interval excludes the reference, ``‡`` of another protocol, else nothing."""
        if self.protocol and not follows_protocol(rows):
            return OTHER_PROTOCOL
        return {-1: BELOW, 1: ABOVE, 0: ""}[self.reference.way(rows)] if self.reference is not None else ""


def follows_protocol(rows: Sequence[Row]) -> bool:
    """Whether all rows follow the protocol of their dataset's Oracle; others do not compare with the table's."""
    return not any(row.get("protocol_differs") for row in rows)


def _perplexity(ending: str, title: str, heading: str = "", **changes: Any) -> Measure:
    references = (
        Reference(f"ratio_to_oracle{ending}", "Oracle"),
        Reference(f"ratio_to_baseline1{ending}", "Baseline1", marks=True, full_name="Baseline1 of the same technique"),
    )
    name = f"perplexity{ending}"
    values: dict[str, Any] = {
        "step": "perplexity",
        "interval": f"{name}_ci",
        "better": "lower",
        "references": references,
        "protocol": True,
        "logarithmic": True,
        "views": frozenset({DOCUMENT, PAGE, APP, MLFLOW}),
    }
    return Measure(name=name, title=title, heading=heading, **{**values, **changes})


def _of_masked_words(ending: str, field: str, title: str = "", heading: str = "", **changes: Any) -> Measure:
    field = f"masked_words.{{technique}}.{field}"
    return _perplexity(ending, title, heading, field=field, interval=f"{field}_ci", **changes)


def _itself(name: str, neutral: float) -> tuple[Reference, ...]:
    return (Reference(name, f"{neutral:g}", neutral, marks=True),)


def _ratio(name: str, title: str, *views: str) -> Measure:
    return Measure(
        name=name,
        title=title,
        step="compared",
        digits=2,
        app_digits=3,
        better="lower",
        references=_itself(name, 1.0),
        interval_over_seeds=True,
        protocol=True,
        views=frozenset({MLFLOW, *views}),
    )


def _speech(name: str, title: str = "", **changes: Any) -> Measure:
    values: dict[str, Any] = {"step": "word_error_rate", "views": frozenset({MLFLOW})}
    return Measure(name=name, title=title, **{**values, **changes})


def _difference(reference: str, title: str) -> Measure:
    name = f"wer_difference_to_{reference}"
    return Measure(
        name=name,
        title=title,
        step="compared",
        share=True,
        digits=2,
        better="lower",
        references=_itself(name, 0.0),
        views=frozenset({APP, MLFLOW}),
    )


_FEWER = ("fewer errors than", "more errors than")
_NUMBERED, _SHOWN = frozenset({MLFLOW}), frozenset({APP, MLFLOW})
MEASURES = (
    _perplexity(
        "",
        "Perplexity, all words",
        "Perplexity on the unmasked test text, all words",
        kind="number",
        over_seeds=True,
        views=frozenset({TERMINAL, DOCUMENT, PAGE, APP, MLFLOW, MLFLOW_TABLE}),
    ),
    _perplexity(
        "_known",
        "Perplexity, words of the vocabulary",
        "Perplexity over words of the vocabulary alone",
        over_seeds=True,
        views=frozenset({TERMINAL, DOCUMENT, PAGE, APP, MLFLOW, MLFLOW_TABLE}),
    ),
    _perplexity("_unknown", "", views=_NUMBERED, references=()),
    _ratio("ratio_to_oracle", "Times Oracle's perplexity, all words", DOCUMENT, APP),
    _ratio("ratio_to_oracle_known", "Times Oracle's perplexity, words of the vocabulary", TERMINAL, DOCUMENT, APP),
    _ratio("ratio_to_oracle_masked_known", ""),
    _ratio("ratio_to_oracle_rest_known", ""),
    _ratio("ratio_to_baseline1", "Times Baseline1's perplexity, all words", APP),
    _ratio("ratio_to_baseline1_known", "Times Baseline1's perplexity, words of the vocabulary", APP),
    _ratio("ratio_to_baseline1_masked_known", ""),
    _ratio("ratio_to_baseline1_rest_known", ""),
    _of_masked_words("_masked", "perplexity", views=_NUMBERED, references=()),
    _of_masked_words(
        "_masked_known",
        "perplexity_known",
        "Perplexity, words that the technique would mask",
        "Perplexity over test words that the technique would mask, words of the vocabulary",
        over_seeds=True,
    ),
    _of_masked_words(
        "_rest_known",
        "perplexity_rest_known",
        "Perplexity, all that the technique leaves",
        "Perplexity over all that the technique leaves, words of the vocabulary",
    ),
    _perplexity(
        "_without_markers",
        "Perplexity without the markers' probability",
        "Perplexity, all words, with the markers' probability given to all other tokens",
        references=(),
        views=frozenset({DOCUMENT, APP, MLFLOW}),
    ),
    Measure(
        name="bits_per_character",
        title="Bits per character, all words",
        step="perplexity",
        interval="bits_per_character_ci",
        digits=2,
        app_digits=3,
        better="lower",
        protocol=True,
        over_seeds=True,
        interval_over_seeds=True,
        views=frozenset({DOCUMENT, APP, MLFLOW}),
    ),
    Measure(name="oov_rate", step="perplexity", share=True, views=_NUMBERED),
    Measure(name="words", step="perplexity", kind="count", digits=0, views=frozenset()),
    Measure(name="sentences", step="perplexity", kind="count", digits=0, views=frozenset()),
    Measure(
        name="gap_closed_known",
        title="Gap between Baseline1 and Oracle that the fills close, %",
        step="compared",
        share=True,
        better="higher",
        references=_itself("gap_closed_known", 0.0),
        interval_over_seeds=True,
        protocol=True,
        views=_SHOWN,
    ),
    _speech(
        "wer",
        "Word error rate, %",
        heading="Word error rate in per cent",
        kind="number",
        interval="wer_ci",
        share=True,
        app_digits=2,
        better="lower",
        references=(
            Reference("wer_difference_to_no_language_model", "No LM", 0.0, sides=_FEWER),
            Reference("wer_difference_to_pretrained", "Pretrained", 0.0, True, "the pretrained model", _FEWER),
            Reference("wer_difference_to_oracle", "Oracle", 0.0, sides=_FEWER),
        ),
        over_seeds=True,
        views=frozenset({TERMINAL, DOCUMENT, PAGE, APP, MLFLOW, MLFLOW_TABLE}),
    ),
    _speech(
        "wer_masked",
        "Word error rate on words that the technique would mask, %",
        heading="Word error rate in per cent on words that the technique would mask",
        field="masked_words.{technique}.wer",
        interval="masked_words.{technique}.wer_ci",
        share=True,
        app_digits=2,
        better="lower",
        views=frozenset({TERMINAL, DOCUMENT, PAGE, APP, MLFLOW}),
    ),
    _speech(
        "character_error_rate",
        "Character error rate, %",
        kind="number",
        interval="character_error_rate_ci",
        share=True,
        app_digits=2,
        better="lower",
        views=_SHOWN,
    ),
    *(_speech(name, kind="count", digits=0) for name in ("insertions", "deletions", "substitutions", "utterances")),
    _speech("reference_words", field="words", kind="count", digits=0, views=frozenset()),
    *(_speech(name, digits=2) for name in ("lm_weight", "insertion_bonus")),
    _difference("no_language_model", "Word error rate less the bare recogniser's, points"),
    _difference("pretrained", "Word error rate less the pretrained model's, points"),
    _difference("oracle", "Word error rate less Oracle's, points"),
    _speech("source_weight", step="rescore"),
    _speech(
        "wer_insertion_bonus_alone",
        step="rescore",
        field="insertion_bonus_alone.wer",
        interval="insertion_bonus_alone.wer_ci",
        share=True,
    ),
    _speech(
        "wer_difference_to_insertion_bonus_alone",
        step="rescore",
        field="difference_to_insertion_bonus_alone",
        kind="number",
        interval="difference_to_insertion_bonus_alone_ci",
        share=True,
    ),
    _speech("wer_best_of_lists", step="rescore", field="oracle_wer", kind="number", share=True),
    _speech("best_first_share", step="rescore", kind="number", share=True),
    Measure(
        name="masked_fraction",
        title="Words of the training text that were masked, %",
        step="mask",
        kind="number",
        share=True,
        digits=2,
        views=frozenset({APP, MLFLOW, MLFLOW_TABLE}),
    ),
    Measure(
        name="restoration_rate",
        title="Masked words that the fills happen to write, %",
        step="fill",
        interval="restoration.overall.rate_ci",
        share=True,
        digits=2,
        better="lower",
        views=frozenset({APP, MLFLOW, MLFLOW_TABLE}),
    ),
    Measure(
        name="restoration_by_frequency",
        title="Masked words that a guess by frequency hits, %",
        step="fill",
        field="expected_restoration_by_frequency",
        share=True,
        digits=2,
        views=_SHOWN,
    ),
    Measure(name="distinct_fills", title="Different fills", step="fill", kind="count", digits=0, views=_SHOWN),
    Measure(name="markers", step="fill", kind="count", digits=0, views=frozenset()),
    Measure(name="fallback_count", step="fill", kind="count?", digits=0, views=frozenset()),
)
"""Every measure of this package, in the order in which tables have them."""


@cache
def measures() -> tuple[Measure, ...]:
    """``MEASURES``, and behind them those of installed packages.

    Raises ``ParameterError`` where an entry point names something else, or a measure that is there already.
    """
    found = {measure.name: measure for measure in MEASURES}
    for point in entry_points(group=ENTRY_POINTS):
        loaded = point.load()
        for measure in [loaded] if isinstance(loaded, Measure) else loaded:
            if not isinstance(measure, Measure) or measure.name in found:
                raise ParameterError(
                    f"entry point {point.name!r} of {ENTRY_POINTS!r} ({point.value}) gives {measure!r}, which is no "
                    "measure of a new name; give it another name, or uninstall the package"
                )
            found[measure.name] = measure
    return tuple(found.values())


def measures_of(view: str) -> list[Measure]:
    """The measures that belong in a view, in their order."""
    return [measure for measure in measures() if view in measure.views]


def measure(name: str) -> Measure:
    """The measure of a name."""
    return next(found for found in measures() if found.name == name)
