"""Which methods the experiment fills with which fillers, and what is wrong where a method and a filler do not fit."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tasks.filling.needed_kind import KINDS, misfit

if TYPE_CHECKING:
    from tasks.parameters.parameter_file import Parameters


def method_problems(parameters: "Parameters") -> list[str]:
    """What is wrong with the methods of ``compare`` beside the fillers that they are to fill with.

    Every method of a dimension fills with every filler of the one beside it. Names that are not there are left to
    others.
    """
    compare = parameters.compare
    kinds = {name: settings.kind for name, settings in (*parameters.fillers.items(), *parameters.tuned_fillers.items())}
    # Large fillers fill nothing where they are there to be tuned alone.
    large = compare.large_fillers if compare.large_techniques else []
    beside: list[tuple[str, Sequence[str], str, Sequence[str]]] = [
        ("methods", compare.methods, "fillers", compare.fillers),
        ("language_model_methods", compare.language_model_methods, "fillers", compare.fillers),
        ("large_methods", compare.large_methods, "large_fillers", large),
        ("tuned_methods", compare.tuned_methods, "tuned_fillers", compare.tuned_fillers),
    ]
    problems = []
    for dimension, methods, other, fillers in beside:
        for name in methods:
            for filler in fillers:
                if name not in parameters.filling or filler not in kinds:
                    continue
                found = misfit(parameters.filling[name], kinds[filler])
                if found is not None:
                    problems.append(
                        f"compare.{dimension}: {name!r} ({found.what}) needs a {found.needs} language model, and "
                        f"{filler!r} of compare.{other} is a {KINDS[kinds[filler]]} one; {found.remedy}, or leave "
                        "one of the two out"
                    )
    kind = parameters.language_model.kind
    if compare.language_model_methods and compare.fillers and kind != "transformer":
        problems.append(
            f"compare.language_model_methods: {compare.language_model_methods[0]!r} asks a language model of kind "
            f"'transformer', and language_model.kind is {kind!r}; set that to transformer, or leave the list empty"
        )
    return problems
