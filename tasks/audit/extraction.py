"""Extraction: private text that a language model generates without a prompt (Carlini et al. 2021, "Extracting Training
Data from Large Language Models").

Each word is sampled from the 40 likeliest. The attack counts runs of five normalised words that occur in exactly one
private line and not in public text. *Blind* is the same count for lines that the model was not trained on, scaled to as
many words: a model that knows the domain writes typical runs without having seen the line.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from tasks.audit.attacked import AttackedModel
from tasks.audit.canaries import Canaries
from tasks.audit.figure import Figure, bootstrapped, share_figure
from tasks.audit.resampling import as_wide_as_wilson
from tasks.audit.settings import AuditSettings
from tasks.corpora.text_lines import read_lines
from tasks.language_model.language_models import Drawing
from tasks.language_model.normalisation import normalise

RUN = 5
_LIKELIEST, _LONGEST = 40, 40
"""Likeliest words or tokens that each is drawn from; longest sentence, in words or tokens."""
Run = tuple[str, ...]


def runs(words: Sequence[str]) -> Iterator[Run]:
    """All runs of ``RUN`` words."""
    return zip(*(words[start:] for start in range(RUN)), strict=False)


def extraction(attacked: AttackedModel) -> dict[str, Figure]:
    """``extracted``: of the runs that the model writes, the share that exactly one line has, a member. The share
    ``extracted_masked`` leaves out runs of the text that was made from the lines. With canaries also
    ``extracted_planted`` and ``extracted_planted_unmasked``: the shares of names and of common words written verbatim.

    Runs of planted lines are left out. The interval is for the difference to blind, from a bootstrap over documents,
    and is at least as wide as Wilson's for so many independent runs.
    """
    settings, lines, is_member, canaries = attacked.settings, attacked.lines, attacked.is_member, attacked.canaries
    if not settings.sampled:
        return {}
    written = attacked.model.sample(Drawing(settings.sampled, _LIKELIEST, _LONGEST, settings.seed))
    ignored = {run for line in attacked.planted for run in runs(normalise(line))}
    times = Counter(run for words in written for run in runs(words) if run not in ignored)
    line_of: dict[Run, int | None] = {}
    length = np.empty(len(lines))
    for number, line in enumerate(lines):
        words = normalise(line)
        length[number] = max(0, len(words) - RUN + 1)
        for run in times.keys() & set(runs(words)):
            line_of[run] = None if run in line_of else number
    own = {run: number for run, number in line_of.items() if number is not None}
    if attacked.public:
        _leave_out(own, read_lines(attacked.public))
    writes = f"{len(written):,} sentences that the model writes by itself, each word of the {_LIKELIEST} likeliest"
    attacker = (
        f"{writes}; runs of {RUN} words that one private line has, and public text has not; blind: of lines that it "
        "was not trained on"
    )

    def figure() -> Figure:
        hits = np.bincount([*own.values()], [times[run] for run in own], minlength=len(lines))
        share = length[is_member].sum() / length[~is_member].sum() if length[~is_member].any() else 0.0
        return _figure(hits, np.where(is_member, 1.0, -share), attacked.documents, times.total(), attacker, settings)

    found = {"extracted": figure()}
    if attacked.text is not None:
        _leave_out(own, attacked.text)
        found["extracted_masked"] = figure()
    return found | (_recited(canaries, set(map(tuple, written)), writes) if canaries and canaries.planted else {})


def _recited(canaries: Canaries, written: set[tuple[str, ...]], writes: str) -> dict[str, Figure]:
    """Share of the most repeated canaries that are written; blind: of the references."""
    most = max(canary.repetitions for canary in canaries.planted)
    found = {}
    for name, family in (("extracted_planted", "masked"), ("extracted_planted_unmasked", "kept")):
        planted = [c.text for c in canaries.planted if (c.family, c.repetitions) == (family, most)]
        others = [line for (of, _), lines in canaries.references.items() if of == family for line in lines]
        hits, chance = ([tuple(normalise(line)) in written for line in lines] for lines in (planted, others))
        attacker = f"{writes}; sentences that were planted {most} times, word for word"
        found[name] = share_figure(hits, [1] * len(hits), attacker, sum(chance) / len(chance) if chance else None)
    return found


def _leave_out(own: dict[Run, int], lines: Iterable[str]) -> None:
    """Remove the runs that occur in other lines."""
    for line in lines:
        if not own:
            return
        for run in own.keys() & set(runs(normalise(line))):
            del own[run]


def _figure(
    hits: np.ndarray, weight: np.ndarray, documents: Sequence[str], total: int, attacker: str, settings: AuditSettings
) -> Figure:
    """``hits`` (L,): how often runs of each line were written; ``weight`` (L,): 1 for members, below 0 for others."""
    if not total or weight.min() >= 0:
        return Figure(None, None, attacker)
    value, blind = (float((hits * part).sum() / total) for part in (weight.clip(min=0), (-weight).clip(min=0)))
    names, document = np.unique(np.array(documents), return_inverse=True)
    above = np.bincount(document, hits * weight, minlength=len(names)) / total
    found = bootstrapped(
        value,
        lambda counts: blind + counts @ above,
        len(names),
        attacker,
        blind=blind,
        places=total,
        samples=settings.bootstrap_samples,
        confidence=settings.confidence,
        seed=settings.seed,
    )
    return replace(found, interval=as_wide_as_wilson(found.interval, value, total, settings.confidence))
