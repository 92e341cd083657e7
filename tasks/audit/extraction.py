"""Extraction: what of a private text a language model writes by itself (Carlini et al. 2021, "Extracting Training Data
from Large Language Models").

Sentences are drawn from the model, given nothing, each word among the 40 likeliest, as in the paper: of the whole
distribution too many words are unlikely ones. What counts of a sentence is a run of five normalised words that one
private line has, and no other, and public text has not. Some are the domain's way of speaking, and whoever has learned
that writes them without having seen the line. So *blind* is the same of lines that the model was not trained on, for as
many words: where nothing but a coin parts the lines and nothing is remembered, both are equal on average. The model
before it was adapted is no such measure; it knows nothing of the domain.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tasks.audit.canaries import Canaries
from tasks.audit.figure import Figure, share_figure
from tasks.audit.resampling import interval_of
from tasks.audit.settings import AuditSettings
from tasks.language_model.evaluation.bootstrap import resample_counts
from tasks.language_model.language_models import Drawing
from tasks.language_model.normalisation import normalise

if TYPE_CHECKING:
    from tasks.language_model.language_models import LanguageModel

RUN = 5
_LIKELIEST, _LONGEST = 40, 40
"""Words, or pieces of words, among which each is drawn, and behind which a sentence is cut off."""
Run = tuple[str, ...]


def runs(words: Sequence[str]) -> Iterator[Run]:
    """All of ``RUN`` words."""
    return zip(*(words[start:] for start in range(RUN)), strict=False)


def extraction(
    attacked: "LanguageModel",
    lines: Sequence[str],
    is_member: np.ndarray,
    documents: Sequence[str],
    settings: AuditSettings,
    *,
    public: Iterable[str] = (),
    text: Iterable[str] | None = None,
    planted: Iterable[str] = (),
    canaries: Canaries | None = None,
) -> dict[str, Figure]:
    """``extracted``: of the runs that the model writes, the share that one line alone has, of those that it was trained
    on; ``extracted_masked``: those of them that stand nowhere in ``text``, which was made of the lines. Of ``canaries``
    also ``extracted_planted`` and ``extracted_planted_kept``: which names, and common words, it writes word for word.

    ``is_member`` and ``documents``: of each line (L,). Runs of what was ``planted`` are left out. The interval is that
    of the difference to blind, from a bootstrap over documents, and at least as wide as Wilson's of so many independent
    runs. The model is asked nothing else from then on.
    """
    written = attacked.sample(Drawing(settings.sampled, _LIKELIEST, _LONGEST, settings.seed))
    ignored = {run for line in planted for run in runs(normalise(line))}
    times = Counter(run for words in written for run in runs(words) if run not in ignored)
    line_of: dict[Run, int | None] = {}
    length = np.empty(len(lines))
    for number, line in enumerate(lines):
        words = normalise(line)
        length[number] = max(0, len(words) - RUN + 1)
        for run in times.keys() & set(runs(words)):
            line_of[run] = None if run in line_of else number
    own = {run: number for run, number in line_of.items() if number is not None}
    _leave_out(own, public)
    writes = f"{len(written):,} sentences that the model writes by itself, each word of the {_LIKELIEST} likeliest"
    attacker = (
        f"{writes}; runs of {RUN} words that one private line has, and public text has not; blind: of lines that it "
        "was not trained on"
    )

    def figure() -> Figure:
        hits = np.bincount([*own.values()], [times[run] for run in own], minlength=len(lines))
        share = length[is_member].sum() / length[~is_member].sum() if length[~is_member].any() else 0.0
        return _figure(hits, np.where(is_member, 1.0, -share), documents, times.total(), attacker, settings)

    found = {"extracted": figure()}
    if text is not None:
        _leave_out(own, text)
        found["extracted_masked"] = figure()
    return found | (_recited(canaries, set(map(tuple, written)), writes) if canaries and canaries.planted else {})


def _recited(canaries: Canaries, written: set[tuple[str, ...]], writes: str) -> dict[str, Figure]:
    """Which of the canaries that stand most often in the text are written, blind: which of the references."""
    most = max(canary.repetitions for canary in canaries.planted)
    found = {}
    for name, family in (("extracted_planted", "masked"), ("extracted_planted_kept", "kept")):
        told = [c.text for c in canaries.planted if (c.family, c.repetitions) == (family, most)]
        others = [line for (of, _), lines in canaries.references.items() if of == family for line in lines]
        hits, chance = ([tuple(normalise(line)) in written for line in lines] for lines in (told, others))
        attacker = f"{writes}; sentences that were planted {most} times, word for word"
        found[name] = share_figure(hits, [1] * len(hits), attacker, sum(chance) / len(chance) if chance else None)
    return found


def _leave_out(own: dict[Run, int], lines: Iterable[str]) -> None:
    """The runs that stand in other lines."""
    for line in lines:
        if not own:
            return
        for run in own.keys() & set(runs(normalise(line))):
            del own[run]


def _figure(
    hits: np.ndarray, weight: np.ndarray, documents: Sequence[str], total: int, attacker: str, settings: AuditSettings
) -> Figure:
    """``hits`` (L,): how often the runs of each line were written; ``weight`` (L,): 1 of members, below 0 of others."""
    from tasks.filling.restoration import wilson_interval

    if not total or weight.min() >= 0:
        return Figure(None, None, attacker)
    value, blind = (float((hits * part).sum() / total) for part in (weight.clip(min=0), (-weight).clip(min=0)))
    names, document = np.unique(np.array(documents), return_inverse=True)
    above = np.bincount(document, hits * weight, minlength=len(names)) / total
    blocks = resample_counts(len(names), settings.bootstrap_samples, settings.seed)
    drawn = blind + np.concatenate([counts @ above for counts in blocks])
    interval = interval_of(value, drawn, len(names), settings.confidence, (0.0, 1.0))
    independent = wilson_interval(round(value * total), total, settings.confidence)
    if interval and independent:
        interval = min(interval[0], independent[0]), max(interval[1], independent[1])
    return Figure(value, interval, attacker, blind, total)
