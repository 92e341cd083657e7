"""What is wrong with the names of ``params.yaml``: those that ``compare`` takes, and those that sections give."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tasks.records.cells import BASELINES, NO_LANGUAGE_MODEL, ORACLE, PRETRAINED
from tasks.results.downstream_names import is_downstream
from tasks.spelling import nearest

if TYPE_CHECKING:
    from tasks.parameters.parameter_file import Parameters


def name_problems(parameters: "Parameters") -> list[str]:
    """What is wrong with names, in words; those of tuned fillers aside, which ``tuning_problems`` knows."""
    return [*_method_names(parameters), *_dimensions(parameters), *_characters(parameters)]


def _method_names(parameters: "Parameters") -> list[str]:
    # Stages tell these methods from others by their names.
    problems = [
        f"filling: {name!r} is of kind {settings.kind!r}; names that begin with 'downstream' are for kind "
        "'downstream', and no others"
        for name, settings in parameters.filling.items()
        if is_downstream(name) != (settings.kind == "downstream")
    ]
    references = (NO_LANGUAGE_MODEL, PRETRAINED, ORACLE, *BASELINES)
    problems += [
        f"filling: {name!r} is what tables call one of the models that methods are compared with "
        f"({', '.join(references)}); name the method otherwise"
        for name in parameters.filling
        if name in references
    ]
    return problems


def _dimensions(parameters: "Parameters") -> list[str]:
    """Names of ``compare`` that are not there, or stand twice."""
    compare, filling = parameters.compare, parameters.filling
    downstream = [name for name, settings in filling.items() if settings.kind == "downstream"]
    with_filler = [name for name, settings in filling.items() if settings.uses_filler and name not in downstream]
    without_filler = [name for name, settings in filling.items() if not settings.uses_filler]
    other_fillers = [name for name in parameters.fillers if name not in compare.fillers]
    gold_sets = parameters.masking_evaluation.gold_sets
    tuned = [tuning.filler for tuning in (*compare.tunings, *compare.tunings_again)]
    dimensions: list[tuple[str, Sequence[str], str, Iterable[str]]] = [
        ("datasets", compare.datasets, "corpora", parameters.corpora),
        ("techniques", compare.techniques, "masking", parameters.masking),
        ("baselines", compare.baselines, "", BASELINES),
        ("speech_datasets", compare.speech_datasets, "speech.corpora", parameters.speech.corpora),
        ("speech_datasets", compare.speech_datasets, "compare.datasets", compare.datasets),
        ("rescored_datasets", compare.rescored_datasets, "speech.nbest", parameters.speech.nbest),
        ("rescored_datasets", compare.rescored_datasets, "compare.datasets", compare.datasets),
        ("taggers", compare.taggers, "taggers", parameters.taggers),
        ("detectors", compare.detectors, "masking", parameters.masking),
        ("gold_sets", compare.gold_sets, "masking_evaluation.gold_sets", gold_sets),
        ("fillers", compare.fillers, "fillers", parameters.fillers),
        ("methods", compare.methods, "filling", with_filler),
        ("language_model_methods", compare.language_model_methods, "filling", downstream),
        ("large_techniques", compare.large_techniques, "compare.techniques", compare.techniques),
        ("large_fillers", compare.large_fillers, "fillers", other_fillers),
        ("large_methods", compare.large_methods, "filling", with_filler),
        ("controls", compare.controls, "filling", without_filler),
        ("tuned_fillers", compare.tuned_fillers, "", tuned),
        ("tuned_methods", compare.tuned_methods, "filling", with_filler),
    ]
    problems = []
    for dimension, names, section, allowed in dimensions:
        allowed = sorted(allowed)
        for name in names:
            if name not in allowed:
                where = f"no key of {section!r} that fits" if section else "not known"
                problems.append(
                    f"compare.{dimension}: {name!r} is {where}{nearest(name, allowed)}; "
                    f"allowed: {', '.join(allowed) or 'none'}"
                )
    for dimension, names in compare:
        if len(set(names)) != len(names):
            problems.append(f"compare.{dimension}: a name stands twice in {names!r}")
    problems += [
        f"compare.rescored_datasets: {name!r} is one of compare.speech_datasets too; a data set has one recogniser"
        for name in compare.rescored_datasets
        if name in compare.speech_datasets
    ]
    return problems


def _characters(parameters: "Parameters") -> list[str]:
    """Names are parts of file names and of the names of stages."""
    names = [
        *parameters.corpora,
        *parameters.masking,
        *parameters.taggers,
        *parameters.masking_evaluation.gold_sets,
        *parameters.fillers,
        *parameters.tuned_fillers,
        *parameters.filling,
        *parameters.speech.corpora,
        *parameters.speech.nbest,
    ]
    return [
        f"{name!r}: a name in params.yaml has letters, digits and underscores only"
        for name in names
        if not name.replace("_", "").isalnum() or not name.isascii()
    ]
