"""All measures of an experiment: one row each, read by the summary, its tables, the report page and MLflow.

A further measure of a stage that is there takes two steps: the stage writes it under ``measured`` of its report, and
a row of ``MEASURES`` says what it is called, where it stands, which direction is better, and in which views it belongs.
A further stage for each cell has a line in ``STEPS`` besides.
Another package adds rows without a change here, by an entry point of the group ``palimpsest.measures`` that names a
``Measure`` or a sequence of them.
"""

from collections.abc import Callable
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from tasks.errors import ParameterError
from tasks.records.cell import Cell
from tasks.records.cells import fill_report, mask_report, perplexity_report
from tasks.results.measure import (
    DOCUMENT,
    MASKED_WORDS,
    MLFLOW,
    MLFLOW_TABLE,
    PAGE,
    TERMINAL,
    Measure,
    Reference,
)

ENTRY_POINTS = "palimpsest.measures"
STEPS: dict[str, Callable[[Cell], Path | None]] = {
    "mask": mask_report,
    "fill": fill_report,
    "perplexity": perplexity_report,
}
"""Where the report of each step is that a cell has whatever the experiment, below their folder; ``None`` where it has
none. The summary refuses to be made without."""
_FURTHER_STEPS = ("fluency", "conclusion", "word_error_rate", "rescore", "audit")
_NONE: frozenset[str] = frozenset()
_RUNS = frozenset({MLFLOW})
_OFFERED = frozenset({MLFLOW})
_WRITTEN = frozenset({DOCUMENT, MLFLOW})
_TABLED = frozenset({DOCUMENT, PAGE, MLFLOW})
_EVERYWHERE = frozenset({TERMINAL, DOCUMENT, PAGE, MLFLOW, MLFLOW_TABLE})


def _perplexity(ending: str, title: str, views: frozenset[str], heading: str = "", **given: Any) -> Measure:
    """Over all words or, by the ending of its name, a part of them; held against Oracle and Baseline1."""
    name, baseline = f"perplexity{ending}", "Baseline1 of the same technique"
    to_oracle = Reference(f"ratio_to_oracle{ending}", "Oracle")
    to_baseline = Reference(f"ratio_to_baseline1{ending}", "Baseline1", marks=True, full_name=baseline)
    known: dict[str, Any] = {"step": "perplexity", "interval": f"{name}_ci", "better": "lower", "protocol": True}
    known |= {"references": (to_oracle, to_baseline), "logarithmic": True, "views": views}
    if "field" in given:
        known["interval"] = f"{given['field']}_ci"
    return Measure(name=name, title=title, heading=heading, **known | given)


def _compared(name: str, title: str, views: frozenset[str], neutral: float, **given: Any) -> Measure:
    """A ratio or difference of two cells, whose marks are about itself."""
    itself = (Reference(name, f"{neutral:g}", neutral, marks=True),)
    return Measure(name=name, title=title, step="compared", references=itself, views=views, **given)


def _ratio(name: str, title: str = "", views: frozenset[str] = _RUNS) -> Measure:
    shown: dict[str, Any] = {"digits": 2, "interval_over_seeds": True}
    return _compared(name, title, views, 1.0, better="lower", protocol=True, **shown)


def _difference(reference: str, title: str) -> Measure:
    return _compared(f"wer_difference_to_{reference}", title, _OFFERED, 0.0, better="lower", share=True, digits=2)


def _number(name: str, step: str, title: str = "", views: frozenset[str] = _RUNS, **given: Any) -> Measure:
    return Measure(name=name, step=step, title=title, views=views, **given)


def _rate(name: str, title: str, views: frozenset[str], **given: Any) -> Measure:
    known: dict[str, Any] = {"interval": f"{given.get('field', name)}_ci", "better": "lower", "share": True}
    return _number(name, "word_error_rate", title, views, **known | given)


def _leak(name: str, title: str, short: str, views: frozenset[str] = _TABLED, **given: Any) -> Measure:
    """What an attack finds; the more, the worse."""
    known: dict[str, Any] = {"interval": f"{name}_ci", "better": "lower", "share": True, "short": short}
    return _number(name, "audit", title, views, **known | given)


def _remembered(name: str, title: str, short: str, views: frozenset[str] = _TABLED, **given: Any) -> Measure:
    """The same of a language model: what it remembers of its text."""
    return _leak(name, title, short, views, of_model=True, **{"share": False, **given})


def _reads(name: str, title: str, *, views: frozenset[str] = _OFFERED, **given: Any) -> Measure:
    """How well a fill reads."""
    return _number(name, "fluency", title, views, **{"interval": f"{name}_ci", **given})


def _found(name: str, title: str, *, views: frozenset[str] = _OFFERED, **given: Any) -> Measure:
    """What a text says of languages and labels."""
    return _number(name, "conclusion", title, views, **{"interval": f"{name}_ci", **given})


def _count(name: str, step: str, title: str = "", views: frozenset[str] = _NONE, **given: Any) -> Measure:
    return _number(name, step, title, views, digits=0, **{"kind": "count", **given})


def _spoken(name: str, title: str, **given: Any) -> Measure:
    """How a fill of text in several languages mixes them."""
    column = f"language_{name}" if name in ("match_rate", "kept_rate") else name
    return _number(column, "fill", title, _OFFERED, field=f"languages.{name}", **given)


_FEWER = ("fewer errors than", "more errors than")
_TO_SYSTEMS = (
    Reference("wer_difference_to_no_language_model", "No LM", 0.0, sides=_FEWER),
    Reference("wer_difference_to_pretrained", "Pretrained", 0.0, True, "the pretrained model", _FEWER),
    Reference("wer_difference_to_oracle", "Oracle", 0.0, sides=_FEWER),
)
# fmt: off
MEASURES = (
    _perplexity("", "Perplexity, all words", _EVERYWHERE, "Perplexity on the unmasked test text, all words",
                kind="number", over_seeds=True),
    _perplexity("_known", "Perplexity, words of the vocabulary", _EVERYWHERE,
                "Perplexity over words of the vocabulary alone", over_seeds=True),
    _perplexity("_unknown", "", _RUNS, references=()),
    _ratio("ratio_to_oracle", "Times Oracle's perplexity, all words", _WRITTEN),
    _ratio("ratio_to_oracle_known", "Times Oracle's perplexity, words of the vocabulary", _WRITTEN | {TERMINAL}),
    _ratio("ratio_to_oracle_masked_known"),
    _ratio("ratio_to_oracle_rest_known"),
    _ratio("ratio_to_baseline1", "Times Baseline1's perplexity, all words", _OFFERED),
    _ratio("ratio_to_baseline1_known", "Times Baseline1's perplexity, words of the vocabulary", _OFFERED),
    _ratio("ratio_to_baseline1_masked_known"),
    _ratio("ratio_to_baseline1_rest_known"),
    _perplexity("_masked", "", _RUNS, field=f"{MASKED_WORDS}perplexity", references=()),
    _perplexity("_masked_known", "Perplexity, words that the technique would mask", _TABLED,
                "Perplexity over test words that the technique would mask, words of the vocabulary",
                field=f"{MASKED_WORDS}perplexity_known", over_seeds=True),
    _perplexity("_rest_known", "Perplexity, all that the technique leaves", _TABLED,
                "Perplexity over all that the technique leaves, words of the vocabulary",
                field=f"{MASKED_WORDS}perplexity_rest_known"),
    _perplexity("_behind_masked", "Perplexity, the word behind one that the technique would mask", _TABLED,
                "Perplexity over test words right behind one that the technique would mask, words of the vocabulary",
                field=f"{MASKED_WORDS}behind.1 word.perplexity", references=()),
    _perplexity("_at_switches", "Perplexity where the language changes", _TABLED,
                "Perplexity over words whose language is not that of the word before, words of the vocabulary",
                field="by_language.switch points.perplexity", references=()),
    _perplexity("_behind_switches", "Perplexity of the word behind a change of language", _TABLED,
                "Perplexity over the word behind one whose language is not that before it, words of the vocabulary",
                field="by_language.1 word behind a switch point.perplexity", references=()),
    _perplexity("_mixed_lines", "Perplexity of lines that mix languages strongly", _TABLED,
                "Perplexity of lines with a code-mixing index above 20, words of the vocabulary",
                field="by_language.lines mixed more than 20.perplexity", references=()),
    _perplexity("_without_markers", "Perplexity without the markers' probability", _WRITTEN,
                "Perplexity, all words, with the markers' probability given to all other tokens", references=()),
    _number("bits_per_character", "perplexity", "Bits per character, all words", _WRITTEN, better="lower",
            interval="bits_per_character_ci", digits=2, protocol=True, over_seeds=True,
            interval_over_seeds=True),
    _number("oov_rate", "perplexity", share=True),
    _count("words", "perplexity"),
    _count("sentences", "perplexity"),
    _compared("gap_closed_known", "Gap between Baseline1 and Oracle that the fills close, %", _OFFERED, 0.0,
              better="higher", share=True, interval_over_seeds=True, protocol=True),
    _rate("wer", "Word error rate, %", _EVERYWHERE, heading="Word error rate in per cent", kind="number",
          references=_TO_SYSTEMS, over_seeds=True),
    _rate("wer_masked", "Word error rate on words that the technique would mask, %", _TABLED | {TERMINAL},
          heading="Word error rate in per cent on words that the technique would mask", field=f"{MASKED_WORDS}wer"),
    _rate("character_error_rate", "Character error rate, %", _OFFERED, kind="number"),
    _rate("mixed_error_rate", "Mixed error rate (characters of Chinese and Japanese, else words), %", _OFFERED),
    _rate("wer_mixed_lines", "Word error rate of lines that mix languages, %", _TABLED,
          field="by_language.mixed lines.wer"),
    _rate("wer_at_switches", "Word error rate where the language changes, %", _TABLED,
          field="by_language.switch points.wer"),
    _rate("wer_embedded", "Word error rate on words that are not in their line's main language, %", _TABLED,
          field="by_language.embedded words.wer"),
    _count("insertions", "word_error_rate", views=_RUNS),
    _count("deletions", "word_error_rate", views=_RUNS),
    _count("substitutions", "word_error_rate", views=_RUNS),
    _count("utterances", "word_error_rate", views=_RUNS),
    _count("reference_words", "word_error_rate", field="words"),
    _number("lm_weight", "word_error_rate", digits=2),
    _number("insertion_bonus", "word_error_rate", digits=2),
    _difference("no_language_model", "Word error rate less the bare recogniser's, points"),
    _difference("pretrained", "Word error rate less the pretrained model's, points"),
    _difference("oracle", "Word error rate less Oracle's, points"),
    _number("source_weight", "rescore"),
    _number("wer_insertion_bonus_alone", "rescore", field="insertion_bonus_alone.wer",
            interval="insertion_bonus_alone.wer_ci", share=True),
    _number("wer_difference_to_insertion_bonus_alone", "rescore", field="difference_to_insertion_bonus_alone",
            kind="number", interval="difference_to_insertion_bonus_alone_ci", share=True),
    _number("wer_best_of_lists", "rescore", field="oracle_wer", kind="number", share=True),
    _number("best_first_share", "rescore", kind="number", share=True),
    _number("masked_fraction", "mask", "Words of the training text that were masked, %", _OFFERED | {MLFLOW_TABLE},
            kind="number", share=True, digits=2),
    _number("told_bits", "mask", "What markers tell of the language of a masked word, bits", _OFFERED, digits=2,
            better="lower"),
    _number("most_masked_language", "mask", "Words of the language that is masked most, %", _OFFERED, share=True),
    _number("least_masked_language", "mask", "Words of the language that is masked least, %", _OFFERED, share=True),
    _leak("clear_share", "Words that any technique calls private, in clear, %", "private words in clear"),
    _leak("residual_entities", "Words that another tagger calls private, in clear, %", "other tagger's, in clear"),
    _leak("residual_direct", "Direct identifiers that another tagger finds in clear, %", "direct identifiers"),
    _leak("residual_quasi", "Quasi-identifiers that another tagger finds in clear, %", "", _OFFERED),
    _leak("verbatim_lines", "Lines that are the private line, word for word, %", "", _OFFERED),
    _leak("reidentified", "Masked words that an attacker guesses at once, %", "guessed at once",
          field="reidentified_1", interval="reidentified_1_ci"),
    _leak("reidentified_10", "Masked words among an attacker's ten guesses, %", "in ten guesses", _OFFERED),
    _leak("same_entity_told", "Mentions of one thing that have equal substitutes, %", "mentions linked", _OFFERED),
    _leak("told_by_second_fill", "Masked places that a second fill of the text tells, %", "", _OFFERED),
    _remembered("exposure", "Exposure of planted names, bits", "names planted"),
    _remembered("exposure_figures", "Exposure of planted numbers, bits", "numbers planted"),
    _remembered("exposure_extrapolated", "Exposure of planted names beyond the references, bits", "", _OFFERED),
    _remembered("exposure_kept", "Exposure of planted common words, bits", "common words planted"),
    _remembered("exposure_kept_1", "Exposure of common words planted once, bits", "common words, once"),
    _leak("exposure_filler", "Exposure of planted names in the tuned filler, bits", "", _OFFERED, share=False),
    _leak("exposure_filler_kept", "Exposure of planted common words in the tuned filler, bits", "", _OFFERED,
          share=False),
    _remembered("membership_auc", "Lines of the text told from others (area under the curve)", "lines told", digits=3,
                references=(Reference("membership_auc", "chance", 0.5, marks=True),)),
    _remembered("membership_tpr_1", "Lines of the text told from others, of which 1 % are mistaken, %",
                "told, 1 % wrong", share=True),
    _remembered("membership_lira_auc", "Lines told from others by shadow models (area under the curve)",
                "lines told, by shadow models", digits=3),
    _remembered("membership_lira_tpr_1", "Lines told by shadow models, of which 1 % are mistaken, %", "", _OFFERED,
                share=True),
    _remembered("membership_neighbourhood_auc", "Lines told from others by their neighbours (area under the curve)", "",
                _OFFERED, digits=3),
    _remembered("extracted", "Runs of five words that the model writes by itself and one private line has, %",
                "written by itself", share=True, digits=2),
    _remembered("extracted_masked", "Of these runs, those with a masked word, %", "", _OFFERED, share=True, digits=2),
    _remembered("extracted_planted", "Planted names that the model writes by itself, %", "", _OFFERED, share=True),
    _remembered("extracted_planted_kept", "Planted common words that the model writes by itself, %",
                "planted, written by itself", share=True),
    _remembered("epsilon_lower_bound", "Epsilon of the training, at least", "epsilon at least", _OFFERED, digits=2,
                interval=None),
    _number("restoration_rate", "fill", "Masked words that the fills happen to write, %", _OFFERED | {MLFLOW_TABLE},
            interval="restoration.overall.rate_ci", share=True, digits=2, better="lower"),
    _number("restoration_by_frequency", "fill", "Masked words that a guess by frequency hits, %", _OFFERED,
            field="expected_restoration_by_frequency", share=True, digits=2),
    _spoken("match_rate", "Fills in the language of their place, %", share=True, better="higher"),
    _spoken("kept_rate", "Fills in the language of the masked word, %", share=True, better="higher"),
    _spoken("switch_rate", "Neighbouring words of two languages, filled, %", share=True, digits=2),
    _spoken("switch_rate_before", "Neighbouring words of two languages, before masking, %", share=True, digits=2),
    _spoken("code_mixing_index", "Code-mixing index, filled"),
    _spoken("code_mixing_index_before", "Code-mixing index, before masking"),
    _spoken("mean_island", "Words in a row of one language, filled", digits=2),
    _spoken("mean_island_before", "Words in a row of one language, before masking", digits=2),
    _found("chi_squared", "Labels by main language: chi-squared", interval=None),
    _found("cramers_v", "Labels by main language: Cramér's V", digits=3, views=_TABLED),
    _found("cramers_v_change", "Cramér's V less that of the private text", digits=3),
    _found("macro_f1", "Macro F1 of a classifier of labels, %", share=True, better="higher", views=_TABLED),
    _found("macro_f1_change", "Macro F1 less that of the private text, points", share=True, better="higher"),
    _reads("part_of_speech_kept", "Places where the fill has the part of speech of the masked word, %", share=True,
           better="higher", views=_TABLED),
    _reads("form_kept", "Places where the fill has number or tense of the masked word too, %", share=True,
           better="higher"),
    _reads("times_raw_perplexity", "Filled lines by private ones: perplexity under another language model", digits=2,
           better="lower", views=_TABLED),
    _reads("repeated", "Fills that repeat the word beside them, %", share=True, better="lower"),
    _reads("repeated_before", "Masked words that repeated the word beside them, %", share=True, interval=None),
    _reads("variety", "Different fills by different masked words", digits=2, better="higher", interval=None),
    _count("distinct_fills", "fill", "Different fills", _OFFERED),
    _count("markers", "fill"),
    _count("fallback_count", "fill", kind="count?"),
)
# fmt: on
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
            if (
                not isinstance(measure, Measure)
                or measure.name in found
                or measure.step not in (*STEPS, *_FURTHER_STEPS)
            ):
                raise ParameterError(
                    f"entry point {point.name!r} of {ENTRY_POINTS!r} ({point.value}) gives {measure!r}, which is no "
                    "measure of a stage under a new name; mend the package, or uninstall it"
                )
            found[measure.name] = measure
    return tuple(found.values())


def measures_of(view: str) -> list[Measure]:
    """The measures that belong in a view, in their order."""
    return [measure for measure in measures() if view in measure.views]


def leaks(view: str | None = None) -> list[Measure]:
    """What attacks find, all or in one view."""
    return [measure for measure in measures() if measure.step == "audit" and (view is None or view in measure.views)]


def measure(name: str) -> Measure:
    """The measure of a name."""
    return next(found for found in measures() if found.name == name)
