"""Word error rates in the document of the findings: per cent, and points for differences."""

from collections.abc import Sequence

from tasks.records.cells import NO_LANGUAGE_MODEL, ORACLE, PRETRAINED
from tasks.results.findings.findings_speech import Rate, SpokenDataset, System
from tasks.results.findings.markdown_table import markdown_table
from tasks.results.summary.summary_table import ABOVE, ABSENT, BELOW, technique_name


def speech_parts(datasets: Sequence[SpokenDataset]) -> list[str]:
    """The parts of the document; none without word error rates."""
    if not datasets:
        return []
    parts = [
        "## Word error rates",
        "The shape of the paper's Table 6: word error rate in per cent with its interval over utterances and, with "
        f"several seeds, over utterances and seeds. {BELOW} fewer, {ABOVE} more errors than with the pretrained "
        "language model: the interval of the paired difference excludes 0. What has no technique stands under each.",
    ]
    for found in datasets:
        seeds = max(system.seeds for system in found.systems)
        parts += [
            f"### {found.dataset}, {found.kind}",
            f"{found.utterances:,} utterances with {found.words:,} words; seeds: {seeds}.",
            _rates(found),
            "Differences in points, paired by utterance:",
            _differences(found.systems),
            _what_it_says(found),
        ]
        if any(rate is not None for system in found.systems for rate in system.wer_masked.values()):
            parts += ["On the words of the references that each technique would mask:", _masked_rates(found)]
    return parts


def _by_label(found: SpokenDataset) -> dict[str, dict[str, System]]:
    """Systems by label and technique; a reference stands under every technique."""
    lines: dict[str, dict[str, System]] = {}
    for system in found.systems:
        names = found.techniques if system.technique is None else (system.technique,)
        lines.setdefault(system.label, {}).update(dict.fromkeys(names, system))
    return lines


def _rates(found: SpokenDataset) -> str:
    rows = []
    for label, systems in _by_label(found).items():
        cells = (systems.get(name) for name in found.techniques)
        rows.append([label, *(_marked(system) if system else ABSENT for system in cells)])
    if found.room is not None:
        alone = _text(found.room.insertion_bonus_alone)
        rows.insert(1, ["No language model, insertion bonus", *([alone] * len(found.techniques))])
        best = f"{100 * found.room.best_of_lists:.2f}"
        rows.append(["*best hypothesis of every list*", *([best] * len(found.techniques))])
    return markdown_table(["", *map(technique_name, found.techniques)], rows)


def _marked(system: System) -> str:
    difference = system.differences[PRETRAINED]
    sign = ""
    if difference is not None and difference.undecided is False:
        sign = f" {BELOW if difference.value < 0 else ABOVE}"
    return _text(system.wer) + sign


def _masked_rates(found: SpokenDataset) -> str:
    rows = [
        [
            label,
            *(_text(systems[name].wer_masked.get(name)) if name in systems else ABSENT for name in found.techniques),
        ]
        for label, systems in _by_label(found).items()
    ]
    return markdown_table(["", *map(technique_name, found.techniques)], rows)


def _differences(systems: Sequence[System]) -> str:
    of_lists = any(system.difference_to_insertion_bonus_alone is not None for system in systems)
    subtracted = any(system.source_weight is not None for system in systems)
    headings = ["", "technique", "to no LM", *(["to insertion bonus alone"] if of_lists else []), "to pretrained"]
    headings += ["to Oracle", "LM weight", "insertion bonus", *(["source weight"] if subtracted else [])]
    rows = []
    for system in systems:
        if system.lm_weight is None:
            continue
        row = [system.label, technique_name(system.technique) if system.technique else ABSENT]
        row.append(_points(system.differences[NO_LANGUAGE_MODEL]))
        if of_lists:
            row.append(_points(system.difference_to_insertion_bonus_alone))
        row += [_points(system.differences[name]) for name in (PRETRAINED, ORACLE)]
        row += [_number(system.lm_weight), _number(system.insertion_bonus)]
        rows.append(row + ([_number(system.source_weight)] if subtracted else []))
    return markdown_table(headings, rows)


def _what_it_says(found: SpokenDataset) -> str:
    """What adaptation moves, and what the lists would allow."""
    sentences = []
    if found.oracle is not None:
        difference = _points(found.oracle.differences[PRETRAINED])
        match found.adaptation_moves:
            case True:
                sentences.append(
                    f"**Adaptation moves the rate**: Oracle against the pretrained model {difference} points."
                )
            case False:
                sentences.append(
                    "**Adaptation moves nothing that can be told from 0**: Oracle, adapted on the unmasked text, "
                    f"differs from the pretrained model by {difference} points, so the rates say nothing of the fills."
                )
    if found.room is not None:
        sentences.append(
            "The lists: the recogniser's own choice is as good as any of its list for "
            f"{found.room.best_first_share:.1%} of the utterances, and the best hypothesis of every list would give "
            f"{100 * found.room.best_of_lists:.2f} %."
        )
        sentences += _shares_of_the_room(found)
    return " ".join(sentences)


def _shares_of_the_room(found: SpokenDataset) -> list[str]:
    """How much of the distance to the lists' best the pretrained model and Oracle gain."""
    alone = next((system.wer.value for system in found.systems if system.lm_weight is None), None)
    if found.room is None or alone is None or alone <= found.room.best_of_lists:
        return []
    way = alone - found.room.best_of_lists
    gains = {"an insertion bonus alone": found.room.insertion_bonus_alone.value}
    gains |= {
        f"{name} at weight {_number(system.lm_weight)}": system.wer.value
        for name, label in (("the pretrained model", "Pretrained"), ("Oracle", "Oracle"))
        for system in found.systems
        if system.label == label
    }
    shares = ", ".join(f"{name} {(alone - rate) / way:.0%}" for name, rate in gains.items())
    subtracted = any(system.source_weight is not None for system in found.systems)
    source = "" if subtracted else " The recogniser's own language was not taken off (no source model is named)."
    return [f"Of the way there: {shares}.{source}"]


def _text(rate: Rate | None) -> str:
    """``19.79 [19.13, 20.41]`` in per cent."""
    if rate is None:
        return ABSENT
    ends = "" if rate.low is None or rate.high is None else f" [{100 * rate.low:.2f}, {100 * rate.high:.2f}]"
    return f"{100 * rate.value:.2f}{ends}"


def _points(rate: Rate | None) -> str:
    """``-0.31 [-0.52, -0.11]`` in points; bold where the interval excludes 0."""
    if rate is None:
        return ABSENT
    ends = "" if rate.low is None or rate.high is None else f" [{100 * rate.low:+.2f}, {100 * rate.high:+.2f}]"
    text = f"{100 * rate.value:+.2f}{ends}"
    return f"**{text}**" if rate.undecided is False else text


def _number(value: float | None) -> str:
    return ABSENT if value is None else f"{value:.3g}"
