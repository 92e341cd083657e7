"""Checks of ``params.yaml`` as a whole: missing, repeated or invalid names, fillers that cannot be made, and methods
that do not fit their filler. The sections themselves check single values."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from tasks.filling.fillers.settings import misfit
from tasks.filling.methods.distilled import Distilled
from tasks.filling.settings import KINDS
from tasks.parameters.compare_settings import Fills
from tasks.records.cells import BASELINES, NO_LANGUAGE_MODEL, ORACLE, PRETRAINED, audited_cells
from tasks.spelling import nearest

if TYPE_CHECKING:
    from tasks.parameters.parameter_file import Parameters

_FILLERS = "fillers' or 'tuned_fillers"
_REFERENCES = (NO_LANGUAGE_MODEL, PRETRAINED, ORACLE, *BASELINES)


def problems_of(parameters: "Parameters") -> list[str]:
    """Each problem in words, with its key path and the remedy."""
    checks = (_characters, _dimensions, _tunings, _fills, _audit, _unlearned, _kind, _twice)
    return list(dict.fromkeys(problem for check in checks for problem in check(parameters)))


_NO_TEXT_IN_YAML = re.compile(
    r"\d[\d_]*|0x[\da-f_]+|0o[0-7_]+|0b[01_]+|\d[\d_]*e\d+|yes|no|on|off|true|false|null", re.IGNORECASE
)
"""Names that YAML 1.1 or 1.2 does not read as text."""


def problem_of_name(name: str) -> list[str]:
    """The problems with the characters of a name; empty without any."""
    if not re.fullmatch(r"[A-Za-z0-9_]{1,60}", name):
        return [f"{name[:80]!r}: a name in params.yaml has letters, digits and underscores only, at most 60"]
    if _NO_TEXT_IN_YAML.fullmatch(name):
        return [f"{name!r}: YAML reads this name as a number or a truth value; add a word, as in 'text_{name}'"]
    return []


def _characters(parameters: "Parameters") -> Iterator[str]:
    """Problems with characters: names are parts of file names and of the commands of stages."""
    speech, gold_sets = parameters.speech, parameters.masking_evaluation.gold_sets
    sections: Sequence[Iterable[str]] = (
        *(parameters.corpora, parameters.masking, parameters.taggers, gold_sets, parameters.fillers),
        *(parameters.tuned_fillers, parameters.filling, speech.corpora, speech.nbest, parameters.unlearning.methods),
        *(parameters.compare.private, parameters.compare.recognisers),
    )
    for name in (name for section in sections for name in section):
        yield from problem_of_name(name)
    for section, taken in (("filling", (*_REFERENCES, *parameters.compare.private)), ("compare.private", _REFERENCES)):
        for name in parameters.filling if section == "filling" else parameters.compare.private:
            if name in taken:
                yield (
                    f"{section}: {name!r} is what tables call one of the models that methods are compared with "
                    f"({', '.join(taken)}); name it otherwise"
                )
    for name in parameters.tuned_fillers:
        if name in parameters.fillers:
            yield f"tuned_fillers: a filler {name!r} is in 'fillers' already; name this one otherwise"


def _dimensions(parameters: "Parameters") -> Iterator[str]:
    compare = parameters.compare
    if not compare.baselines and not compare.fills:
        yield "compare: baselines and fills are both empty, and nothing is compared; name a baseline, such as baseline1"
    gold_sets = parameters.masking_evaluation.gold_sets
    dimensions: list[tuple[str, Sequence[str], str, Collection[str]]] = [
        ("datasets", compare.datasets, "corpora", parameters.corpora),
        ("techniques", compare.techniques, "masking", parameters.masking),
        ("speech_datasets", compare.speech_datasets, "speech.corpora", parameters.speech.corpora),
        ("rescored_datasets", compare.rescored_datasets, "speech.nbest", parameters.speech.nbest),
        ("taggers", compare.taggers, "taggers", parameters.taggers),
        ("detectors", compare.detectors, "masking", parameters.masking),
        ("gold_sets", compare.gold_sets, "masking_evaluation.gold_sets", gold_sets),
        ("unlearned", compare.unlearned, "unlearning.methods", parameters.unlearning.methods),
    ]
    for dimension, names, section, allowed in dimensions:
        yield from _unknown(f"compare.{dimension}", names, section, allowed)
    recognised = compare.speech_techniques or []
    yield from _unknown("compare.speech_techniques", recognised, "masking", parameters.masking)
    if compare.speech_datasets and recognised and not set(recognised) & set(compare.techniques):
        yield (
            f"compare.speech_techniques: none of {', '.join(recognised)} is one of compare.techniques "
            f"({', '.join(compare.techniques)}), so that no cell would have word error rates; name one, or null for all"
        )
    labelled = [name for name in compare.datasets if getattr(parameters.corpora.get(name), "label_field", None)]
    yield from _unknown("compare.conclusions", compare.conclusions, "corpora' with label_field of 'datasets", labelled)
    for dimension in ("speech_datasets", "rescored_datasets"):
        names = getattr(compare, dimension)
        for name in (name for name in names if name not in compare.datasets):
            left = ", ".join(name for name in names if name in compare.datasets)
            yield (
                f"compare.{dimension}: {name!r} is not one of compare.datasets ({', '.join(compare.datasets)}); "
                f"write 'compare.{dimension}: [{left}]'"
            )
    for name in compare.rescored_datasets:
        if name in compare.speech_datasets:
            yield (
                f"compare.rescored_datasets: {name!r} is one of compare.speech_datasets too; a data set has one "
                "recogniser"
            )


def _unknown(where: str, names: Iterable[str], section: str, allowed: Iterable[str]) -> Iterator[str]:
    known = sorted(allowed)
    for name in names:
        if name not in known:
            listed = ", ".join(known) or "none"
            yield f"{where}: {name!r} is no key of '{section}' that fits{nearest(name, known)}; allowed: {listed}"


def _tunings(parameters: "Parameters") -> Iterator[str]:
    """Problems with bases of tuned fillers; unused ones may name a missing filler."""
    tuned, fillers = parameters.tuned_fillers, parameters.fillers
    for name, settings in tuned.items():
        if settings.base is None:
            yield f"tuned_fillers.{name}.base: is missing; name the filler that it starts from"
    for first in dict.fromkeys(fills.filler for fills in parameters.compare.fills if fills.filler in tuned):
        name, rounds = str(first), list[str]()
        while name in tuned and (base := tuned[name].base) is not None:
            if name in rounds:
                circle = " -> ".join([*rounds[rounds.index(name) :], name])
                yield f"tuned_fillers.{name}.base: goes round in a circle ({circle}); begin with a filler of 'fillers'"
                break
            rounds.append(name)
            made = fillers.get(base) or tuned.get(base)
            if made is None:
                yield from _unknown(f"tuned_fillers.{name}.base", [base], _FILLERS, [*fillers, *tuned])
            elif made.kind != tuned[name].kind:
                yield f"tuned_fillers.{name}.kind: {tuned[name].kind!r} is not that of its base {base!r}, {made.kind!r}"
            name = base


def _audit(parameters: "Parameters") -> Iterator[str]:
    # dvc.yaml makes the stage depend on the section by its name, so the default of a missing section does not help.
    if any(fills.audited for fills in parameters.compare.fills) and "audit" not in parameters.model_fields_set:
        yield "audit: is missing, and compare.fills has something that is audited; give it, if only as {}"
    if parameters.compare.fills and "fluency" not in parameters.model_fields_set:
        yield "fluency: is missing, and compare.fills has fills to be read; give it, if only as {}"
    if parameters.compare.conclusions and "conclusion" not in parameters.model_fields_set:
        yield "conclusion: is missing, and compare.conclusions has some to be tested; give it, if only as {}"
    attacked = [cell.path for cell in audited_cells(parameters.compare)]
    for name in parameters.audit.shadowed or []:
        if name not in attacked:
            listed = ", ".join(attacked) or "nothing"
            yield f"audit.shadowed: {name!r} is not audited{nearest(name, attacked)}; audited: {listed}"


def _unlearned(parameters: "Parameters") -> Iterator[str]:
    settings, filling, compare = parameters.unlearning, parameters.filling, parameters.compare
    if compare.unlearned:
        yield from _unknown("unlearning.technique", [settings.technique], "compare.techniques", compare.techniques)
        controls = [name for name, method in filling.items() if not method.uses_filler]
        yield from _unknown("unlearning.fill", [settings.fill], "filling", controls)


def _fills(parameters: "Parameters") -> Iterator[str]:
    filling, fillers = parameters.filling, {**parameters.fillers, **parameters.tuned_fillers}
    techniques = parameters.compare.techniques
    for place, fills in enumerate(parameters.compare.fills):
        where = f"compare.fills.{place}"
        yield from _unknown(f"{where}.techniques", fills.techniques or [], "compare.techniques", techniques)
        if fills.filler is not None:
            yield from _unknown(f"{where}.filler", [fills.filler], _FILLERS, fillers)
        fitting = [name for name, settings in filling.items() if settings.uses_filler == (fills.filler is not None)]
        yield from _unknown(f"{where}.methods", fills.methods, "filling", fitting)
        for name in fills.methods:
            if isinstance(method := filling.get(name), Distilled):
                yield from _distilled(name, method, parameters, audited=name in fills.audited)
            if name not in fitting or fills.filler not in fillers:
                continue
            kind = fillers[fills.filler].kind
            if (found := misfit(filling[name], kind)) is not None:
                yield (
                    f"{where}.methods: {name!r} ({found.what}) needs a {found.needs} language model, and "
                    f"{fills.filler!r} is a {KINDS[kind]} one; {found.remedy}, or leave one of the two out"
                )


def _distilled(name: str, method: Distilled, parameters: "Parameters", *, audited: bool) -> Iterator[str]:
    used = set(method.sources.values())
    if "baseline1" in used and "baseline1" not in parameters.compare.baselines:
        yield f"filling.{name}: draws from the model of 'baseline1', which compare.baselines lacks; add it there"
    if audited and "oracle" in used:
        yield (
            f"compare.fills: {name!r} is drawn from a model of the raw text, of which there is no twin to attack; take "
            "it out of audited ('palimpsest profile forgetting' plants secrets for that)"
        )


def _kind(parameters: "Parameters") -> Iterator[str]:
    kind = parameters.language_model.kind
    if parameters.compare.private and kind != "transformer":
        yield (
            f"compare.private: DP-SGD is for language_model.kind 'transformer', and it is {kind!r}; write "
            "'compare.private: {}'"
        )
    if parameters.compare.unlearned and kind == "ngram":
        yield (
            f"compare.unlearned: language_model.kind {kind!r} has no weights to train; take 'transformer' or "
            "'causal_lm', or write 'compare.unlearned: []'"
        )


def _twice(parameters: "Parameters") -> Iterator[str]:
    compare = parameters.compare
    for dimension, names in compare:
        if names and dimension not in ("fills", "private") and len(set(names)) != len(names):
            yield f"compare.{dimension}: a name occurs twice in {names!r}"
    seen = set()
    for fills in compare.fills:
        for technique in compare.techniques_of(fills):
            for method in fills.methods:
                if (technique, fills.filler, method) in seen:
                    yield f"compare.fills: {_asked(fills, method)} of {technique!r} occurs twice; leave it out once"
                seen.add((technique, fills.filler, method))


def _asked(fills: Fills, method: str) -> str:
    return f"the fill by {method!r}" + (f" with {fills.filler!r}" if fills.filler else "")
