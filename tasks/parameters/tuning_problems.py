"""What is wrong with the fillers that are to be fine-tuned on the masked corpora, and with their bases."""

from typing import TYPE_CHECKING

from tasks.results.fine_tuned_names import is_tuned_in_domain, pretrained_counterpart
from tasks.spelling import nearest

if TYPE_CHECKING:
    from tasks.parameters.parameter_file import Parameters


def tuning_problems(parameters: "Parameters") -> list[str]:
    """What is wrong with ``compare.tunings`` and ``compare.tunings_again``, and with the names of tuned fillers."""
    compare = parameters.compare
    problems = []
    made = [*compare.fillers, *compare.large_fillers]
    kinds = {name: parameters.fillers[name].kind for name in made if name in parameters.fillers}
    roots = {name: name for name in kinds}
    for dimension, tunings in (("tunings", compare.tunings), ("tunings_again", compare.tunings_again)):
        # A further round may start from another one of the same list; a first round starts from a filler.
        bases = list(kinds) if dimension == "tunings" else [name for name in kinds if roots[name] != name]
        for tuning in tunings:
            name, base = tuning.filler, tuning.base
            settings = parameters.tuned_fillers.get(name)
            if settings is None:
                allowed = sorted(parameters.tuned_fillers)
                problems.append(
                    f"compare.{dimension}: {name!r} is no key of 'tuned_fillers'{nearest(name, allowed)}; "
                    f"allowed: {', '.join(allowed) or 'none'}"
                )
                continue
            if base not in bases:
                problems.append(
                    f"compare.{dimension}: the base {base!r} of {name!r} is not made before it{nearest(base, bases)}; "
                    f"allowed: {', '.join(bases) or 'none'}"
                )
                continue
            if settings.kind != kinds[base]:
                problems.append(
                    f"tuned_fillers.{name}.kind: {settings.kind!r} is not that of its base {base!r}, {kinds[base]!r}"
                )
            if name in kinds:
                problems.append(f"compare.{dimension}: a filler {name!r} is there already; name this one otherwise")
            elif pretrained_counterpart(name) != pretrained_counterpart(base):
                problems.append(
                    f"compare.{dimension}: {name!r} does not say that it is {roots[base]!r} fine-tuned; "
                    f"call it {roots[base] + '_tuned'!r} or {roots[base] + '_tuned_round_2'!r}"
                )
            kinds[name], roots[name] = settings.kind, roots[base]
            if dimension == "tunings_again":
                bases.append(name)
    # Stages and tables tell tuned fillers from others by their names.
    problems += [
        f"fillers: {name!r} is called as fillers are that are tuned on a masked corpus; name it otherwise"
        for name in parameters.fillers
        if is_tuned_in_domain(name)
    ]
    problems += [
        f"tuned_fillers: {name!r} needs a name with '_tuned' or '_round_2' at its end"
        for name in parameters.tuned_fillers
        if not is_tuned_in_domain(name)
    ]
    return problems
