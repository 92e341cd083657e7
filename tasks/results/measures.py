"""All measures of an experiment: one row each, read by the summary, its tables, the report page and MLflow.

A further measure of an existing stage takes two steps. The stage writes it under ``measured`` of its report. A row of
``MEASURES`` has its name, its field, the better direction, and its views. A further stage for each cell also has a line
in ``STEPS``. Another package adds rows without a change here, by an entry point of the group ``palimpsest.measures``
that names a ``Measure`` or a sequence of them.
"""

from collections.abc import Callable
from functools import cache, partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from tasks.audit.rungs import RUNGS, figure_of
from tasks.errors import ParameterError
from tasks.records.cell import Cell
from tasks.records.cells import fill_report, mask_report, perplexity_report
from tasks.results.measure import (
    DOCUMENT,
    MASKED_WORDS,
    MLFLOW,
    PAGE,
    Measure,
    Reference,
)

ENTRY_POINTS = "palimpsest.measures"
STEPS: dict[str, Callable[[Cell], Path | None]] = {
    "mask": mask_report,
    "fill": fill_report,
    "perplexity": perplexity_report,
}
"""Path of each step's report in the folder of reports, for every experiment; ``None`` if a cell has none. The summary
fails without these reports."""
_FURTHER_STEPS = ("fluency", "conclusion", "unmasked", "word_error_rate", "rescore", "audit")
_NONE: frozenset[str] = frozenset()
_RUNS = frozenset({MLFLOW})
_WRITTEN = frozenset({DOCUMENT, MLFLOW})
_TABLED = frozenset({DOCUMENT, PAGE, MLFLOW})


def _number(name: str, step: str, title: str = "", views: frozenset[str] = _RUNS, **given: Any) -> Measure:
    return Measure(name=name, step=step, title=title, views=views, **given)


def _perplexity(ending: str, title: str, views: frozenset[str], heading: str = "", **given: Any) -> Measure:
    """A perplexity over all words or, by the ending of its name, a part of them, marked against Baseline1."""
    name = f"perplexity{ending}"
    reference = Reference(f"ratio_to_baseline1{ending}", "Baseline1")
    known: dict[str, Any] = {"interval": f"{given.get('field', name)}_ci", "better": "lower", "protocol": True}
    known |= {"heading": heading, "reference": reference, "logarithmic": True}
    return _number(name, "perplexity", title, views, **known | given)


def _compared(name: str, title: str, views: frozenset[str], neutral: float, **given: Any) -> Measure:
    """A ratio or difference of two cells, whose marks are about itself."""
    return _number(name, "compared", title, views, reference=Reference(name, f"{neutral:g}", neutral), **given)


def _ratio(name: str, title: str = "", views: frozenset[str] = _RUNS) -> Measure:
    shown: dict[str, Any] = {"digits": 2, "interval_over_seeds": True}
    return _compared(name, title, views, 1.0, better="lower", protocol=True, **shown)


def _difference(reference: str, title: str) -> Measure:
    return _compared(f"wer_difference_to_{reference}", title, _RUNS, 0.0, better="lower", share=True, digits=2)


def _rate(name: str, title: str, views: frozenset[str], **given: Any) -> Measure:
    known: dict[str, Any] = {"interval": f"{given.get('field', name)}_ci", "better": "lower", "share": True}
    return _number(name, "word_error_rate", title, views, **known | given)


def _unmasked(sort: str, title: str) -> Measure:
    """A count of identifiers of a kind that a technique leaves unmasked, in the report of the corpus."""
    name, field = f"unmasked_{sort}", f"{sort}.unmasked_per_1000"
    return _number(name, "unmasked", title, _TABLED, field=field, interval=f"{field}_ci", better="lower")


def _recall(sort: str, title: str) -> Measure:
    """The share of the identifiers of a kind that a technique masks whole."""
    known: dict[str, Any] = {"field": f"{sort}.recall", "interval": f"{sort}.recall_ci", "share": True}
    return _number(f"recall_{sort}", "unmasked", title, better="higher", **known)


def _leak(name: str, title: str, views: frozenset[str] = _TABLED, **given: Any) -> Measure:
    """The result of an attack; higher is worse."""
    known: dict[str, Any] = {"interval": f"{name}_ci", "better": "lower", "share": True}
    return _number(name, "audit", title, views, **known | given)


def _remembered(name: str, title: str, views: frozenset[str] = _TABLED, **given: Any) -> Measure:
    """The result of an attack on a language model: its memory of the training text."""
    return _leak(name, title, views, of_model=True, **{"share": False, **given})


def _of_text(step: str, name: str, title: str, *, views: frozenset[str] = _RUNS, **given: Any) -> Measure:
    """A measure of a fill's ``fluency``, or of a text's languages and labels (``conclusion``)."""
    return _number(name, step, title, views, **{"interval": f"{name}_ci", **given})


_reads, _found = partial(_of_text, "fluency"), partial(_of_text, "conclusion")


def _count(name: str, step: str, title: str = "", views: frozenset[str] = _NONE, **given: Any) -> Measure:
    return _number(name, step, title, views, digits=0, **given)


def _spoken(name: str, title: str, **given: Any) -> Measure:
    """A measure of code mixing in a fill."""
    column = f"language_{name}" if name in ("match_rate", "word_match_rate") else name
    return _number(column, "fill", title, field=f"languages.{name}", **given)


_TO_PRETRAINED = Reference("wer_difference_to_pretrained", "Pretrained", 0.0, ("fewer errors than", "more errors than"))
# fmt: off
MEASURES = (
    _perplexity("", "Perplexity, all words", _TABLED, "Perplexity on the unmasked test text, all words",
                over_seeds=True),
    _perplexity("_known", "Perplexity, in-vocabulary words", _TABLED,
                "Perplexity over in-vocabulary words", over_seeds=True),
    _perplexity("_unknown", "", _RUNS, reference=None),
    _ratio("ratio_to_oracle", "Perplexity ratio to Oracle, all words", _WRITTEN),
    _ratio("ratio_to_oracle_known", "Perplexity ratio to Oracle, in-vocabulary words", _WRITTEN),
    _ratio("ratio_to_oracle_masked_known", "Perplexity ratio to Oracle, words to be masked", _RUNS | {PAGE}),
    _ratio("ratio_to_oracle_rest_known"),
    _ratio("ratio_to_baseline1", "Perplexity ratio to Baseline1, all words", _RUNS),
    _ratio("ratio_to_baseline1_known", "Perplexity ratio to Baseline1, in-vocabulary words", _RUNS),
    _ratio("ratio_to_baseline1_masked_known"),
    _ratio("ratio_to_baseline1_rest_known"),
    _perplexity("_masked", "", _RUNS, field=f"{MASKED_WORDS}perplexity", reference=None),
    _perplexity("_masked_known", "Perplexity, words to be masked", _WRITTEN,
                "Perplexity over test words that the technique would mask, in-vocabulary",
                field=f"{MASKED_WORDS}perplexity_known", over_seeds=True),
    _perplexity("_rest_known", "Perplexity, words not to be masked", _TABLED,
                "Perplexity over test words that the technique would not mask, in-vocabulary",
                field=f"{MASKED_WORDS}perplexity_rest_known"),
    _perplexity("_behind_masked", "Perplexity, word after a word to be masked", _TABLED,
                "Perplexity over the word after a test word that the technique would mask, in-vocabulary",
                field=f"{MASKED_WORDS}behind.1 word.perplexity", reference=None),
    _perplexity("_at_switches", "Perplexity at code-switch points", _TABLED,
                "Perplexity over words at code-switch points, in-vocabulary",
                field="by_language.switch points.perplexity", reference=None),
    _perplexity("_behind_switches", "Perplexity of the word after a code-switch point", _TABLED,
                "Perplexity over the word after a code-switch point, in-vocabulary",
                field="by_language.1 word behind a switch point.perplexity", reference=None),
    _perplexity("_mixed_lines", "Perplexity of strongly code-mixed lines", _TABLED,
                "Perplexity of lines with a code-mixing index above 20, in-vocabulary words",
                field="by_language.lines mixed more than 20.perplexity", reference=None),
    _perplexity("_without_markers", "Perplexity, mask tokens excluded", _WRITTEN,
                "Perplexity, all words, with the probability of mask tokens given to all other tokens", reference=None),
    _number("bits_per_character", "perplexity", "Bits per character, all words", _WRITTEN, better="lower",
            interval="bits_per_character_ci", digits=2, protocol=True, over_seeds=True,
            interval_over_seeds=True),
    _number("oov_rate", "perplexity", share=True),
    _count("words", "perplexity"),
    _count("sentences", "perplexity"),
    _compared("gap_closed_known", "Share of the gap from Baseline1 to Oracle closed (log scale), %", _RUNS, 0.0,
              better="higher", share=True, interval_over_seeds=True, protocol=True),
    _rate("wer", "Word error rate, %", _TABLED, heading="Word error rate in per cent",
          reference=_TO_PRETRAINED, over_seeds=True),
    _rate("wer_masked", "Word error rate on words to be masked, %", _TABLED,
          heading="Word error rate in per cent on words that the technique would mask", field=f"{MASKED_WORDS}wer"),
    _rate("character_error_rate", "Character error rate, %", _RUNS),
    _rate("mixed_error_rate", "Mixed error rate (characters of Chinese and Japanese, else words), %", _RUNS),
    _rate("wer_mixed_lines", "Word error rate of code-mixed lines, %", _TABLED,
          field="by_language.mixed lines.wer"),
    _rate("wer_at_switches", "Word error rate at code-switch points, %", _TABLED,
          field="by_language.switch points.wer"),
    _rate("wer_embedded", "Word error rate on embedded-language words, %", _TABLED,
          field="by_language.embedded words.wer"),
    _count("insertions", "word_error_rate", views=_RUNS),
    _count("deletions", "word_error_rate", views=_RUNS),
    _count("substitutions", "word_error_rate", views=_RUNS),
    _count("utterances", "word_error_rate", views=_RUNS),
    _count("reference_words", "word_error_rate", field="words"),
    _number("lm_weight", "word_error_rate", digits=2),
    _number("insertion_bonus", "word_error_rate", digits=2),
    _difference("no_language_model", "Word error rate, difference to no language model, points"),
    _difference("pretrained", "Word error rate, difference to the pretrained model, points"),
    _difference("oracle", "Word error rate, difference to Oracle, points"),
    _number("wer_insertion_bonus_alone", "rescore", field="insertion_bonus_alone.wer",
            interval="insertion_bonus_alone.wer_ci", share=True),
    _number("wer_difference_to_insertion_bonus_alone", "rescore", field="difference_to_insertion_bonus_alone",
            interval="difference_to_insertion_bonus_alone_ci", share=True),
    _number("wer_best_of_lists", "rescore", field="oracle_wer", share=True),
    _number("best_first_share", "rescore", share=True),
    _number("masked_fraction", "mask", "Masking rate of the training text, %", _RUNS,
            share=True, digits=2),
    _number("marker_language_bits", "mask", "Language of a masked word revealed by its mask token, bits", _RUNS,
            digits=2, better="lower"),
    _number("most_masked_language", "mask", "Masking rate of the language masked most, %", _RUNS, share=True),
    _number("least_masked_language", "mask", "Masking rate of the language masked least, %", _RUNS, share=True),
    _unmasked("direct", "Unmasked direct identifiers, per 1,000 lines"),
    _unmasked("quasi", "Unmasked quasi-identifiers, per 1,000 lines"),
    _recall("direct", "Recall of direct identifiers, %"),
    _recall("quasi", "Recall of quasi-identifiers, %"),
    _leak("verbatim_lines", "Lines equal to the private line, %", _RUNS),
    _leak("reidentified", "Masked words recovered, top-1, %",
          field="reidentified_1", interval="reidentified_1_ci"),
    _leak("reidentified_10", "Masked words recovered, top-10, %", _RUNS),
    *(_leak(figure_of(rung), f"Masked words recovered, top-1, attacker '{rung}', %",
            field=f"{figure_of(rung)}_1", interval=f"{figure_of(rung)}_1_ci") for rung in RUNGS),
    _leak("linked_mentions", "Linkable mentions of one entity, %", _RUNS),
    _leak("found_by_second_fill", "Mask positions revealed by a second fill, %", _RUNS),
    _remembered("exposure", "Canary exposure: masked names, bits"),
    _remembered("exposure_figures", "Canary exposure: masked numbers, bits"),
    _remembered("exposure_extrapolated", "Canary exposure: masked names, extrapolated, bits", _RUNS),
    _remembered("exposure_unmasked", "Canary exposure: unmasked words, bits"),
    _remembered("exposure_unmasked_1", "Canary exposure: unmasked words inserted once, bits"),
    _leak("exposure_filler", "Canary exposure: masked names in the tuned filler, bits", _RUNS, share=False),
    _leak("exposure_filler_unmasked", "Canary exposure: unmasked words in the tuned filler, bits", _RUNS,
          share=False),
    _remembered("membership_auc", "Membership inference (loss attack), AUC", digits=3,
                reference=Reference("membership_auc", "chance", 0.5)),
    _remembered("membership_tpr_1", "Membership inference (loss attack), TPR at 1 % FPR, %",
                share=True),
    _remembered("membership_lira_auc", "Membership inference (shadow models, LiRA), AUC",
                digits=3),
    _remembered("membership_lira_tpr_1", "Membership inference (shadow models, LiRA), TPR at 1 % FPR, %", _RUNS,
                share=True),
    _remembered("membership_neighbourhood_auc", "Membership inference (neighbourhood attack), AUC", _RUNS,
                digits=3),
    _remembered("extracted", "Memorised 5-grams in generated text, %", share=True, digits=2),
    _remembered("extracted_masked", "Memorised 5-grams with a masked word, %", _RUNS, share=True, digits=2),
    _remembered("extracted_planted", "Canaries extracted verbatim: masked names, %", _RUNS, share=True),
    _remembered("extracted_planted_unmasked", "Canaries extracted verbatim: unmasked words, %",
                share=True),
    _remembered("epsilon_lower_bound", "Empirical lower bound on epsilon", _RUNS, digits=2,
                interval=None),
    _number("restoration_rate", "fill", "Exact-match rate of the fill, %", _RUNS,
            interval="restoration.overall.rate_ci", share=True, digits=2, better="lower"),
    _number("restoration_by_frequency", "fill", "Exact-match rate of unigram sampling, %", _RUNS,
            field="expected_restoration_by_frequency", share=True, digits=2),
    _spoken("match_rate", "Fills in the language of their context, %", share=True, better="higher"),
    _spoken("word_match_rate", "Fills in the language of the masked word, %", share=True, better="higher"),
    _spoken("switch_rate", "Code-switch rate, filled text, %", share=True, digits=2),
    _spoken("switch_rate_before", "Code-switch rate, private text, %", share=True, digits=2),
    _spoken("code_mixing_index", "Code-mixing index, filled text"),
    _spoken("code_mixing_index_before", "Code-mixing index, private text"),
    _spoken("mean_island", "Length of monolingual spans, filled text, words", digits=2),
    _spoken("mean_island_before", "Length of monolingual spans, private text, words", digits=2),
    _found("chi_squared", "Labels by main language: chi-squared", interval=None),
    _found("cramers_v", "Labels by main language: Cramér's V", digits=3, views=_TABLED),
    _found("cramers_v_change", "Cramér's V, difference to the private text", digits=3),
    _found("macro_f1", "Macro F1 of a classifier of labels, %", share=True, better="higher", views=_TABLED),
    _found("macro_f1_change", "Macro F1, difference to the private text, points", share=True, better="higher"),
    _reads("part_of_speech_match", "Part of speech preserved, %", share=True,
           better="higher", views=_TABLED),
    _reads("form_match", "Part of speech, number and tense preserved, %", share=True,
           better="higher"),
    _reads("times_raw_perplexity", "Relative perplexity under a held-out language model", digits=2,
           better="lower", views=_TABLED),
    _reads("repeated", "Adjacent repetition rate, filled, %", share=True, better="lower"),
    _reads("repeated_before", "Adjacent repetition rate, private text, %", share=True, interval=None),
    _reads("variety", "Lexical diversity (distinct fills / distinct masked words)", digits=2, better="higher",
           interval=None),
    _count("distinct_fills", "fill", "Distinct fills", _RUNS),
    _count("markers", "fill"),
    _count("fallback_count", "fill"),
)
# fmt: on
"""Every measure of this package, in the order in which tables have them."""


@cache
def measures() -> tuple[Measure, ...]:
    """``MEASURES``, followed by those of installed packages.

    Raises ``ParameterError`` if an entry point names something else, or an existing measure.
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
                    "measure of a stage under a new name; correct the package, or uninstall it"
                )
            found[measure.name] = measure
    return tuple(found.values())


def measures_of(view: str) -> list[Measure]:
    """The measures of a view, in their order."""
    return [measure for measure in measures() if view in measure.views]


LEAKAGE = ("unmasked", "audit")
"""Steps that measure leakage. One table has their measures."""


def leaks() -> list[Measure]:
    """The results of attacks."""
    return [measure for measure in measures() if measure.step == "audit"]


def leakage(view: str) -> list[Measure]:
    """Measures of leakage in a view: unmasked identifiers, and results of attacks."""
    return [each for each in measures_of(view) if each.step in LEAKAGE]


def measure(name: str) -> Measure:
    """The measure of a name."""
    return next(found for found in measures() if found.name == name)
