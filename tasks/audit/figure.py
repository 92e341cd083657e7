"""The result of one attack: a number, its interval, and the result where there is nothing to find."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

_SAMPLES, _CONFIDENCE, _SEED = 1000, 0.95, 1


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of an audit. A share is from 0 to 1, exposure is in bits."""

    value: float | None
    """``None`` if there was nothing to attack."""
    interval: tuple[float, float] | None
    """Both ends; ``None`` if the value is exact or has too few places."""
    attacker: str
    """The attack in one line, without words of the text; figures of different attackers are not comparable."""
    blind: float | None = None
    """Result of the attack without the attacked text or model: guesses by frequency, or the model before adaptation.
    ``None`` if there is no such attack, as for a count."""
    places: int = 0
    """Number of words, lines or canaries that the value is over."""

    def fields(self, name: str) -> dict[str, Any]:
        """The figure's entries in a report, under its name."""
        interval = list(self.interval) if self.interval is not None else None
        return {name: self.value, f"{name}_ci": interval, f"{name}_blind": self.blind, f"{name}_places": self.places}


def fields_of(figures: Mapping[str, Figure]) -> dict[str, Any]:
    """The entries of figures in a report."""
    return {key: value for name, figure in figures.items() for key, value in figure.fields(name).items()}


def share_figure(hits: Sequence[float], places: Sequence[float], attacker: str, blind: float | None = None) -> Figure:
    """A share of places, from the hits and places of each document; places of one document are not independent.

    The interval is at 95 %, from a bootstrap over documents. Resamples of equal values have no width, so it is Wilson's
    score interval if all or none of the places are hits, if every document has at most one place, or, with a document
    as one place, if all documents have the same share. With few
    documents the bootstrap is too narrow, so the interval is stretched (``student_stretch``).
    """
    import numpy as np

    from tasks.filling.restoration import wilson_interval

    found, counted = np.array(hits, dtype=np.float64), np.array(places, dtype=np.float64)
    found, counted = found[counted > 0], counted[counted > 0]
    total = int(counted.sum())
    if not total:
        return Figure(None, None, attacker, blind)
    value = float(found.sum() / total)
    same = np.ptp(found / counted) == 0
    if same or counted.max() == 1:
        many = total if value in (0, 1) or counted.max() == 1 else len(counted)
        ends = wilson_interval(round(value * many), many)
        return Figure(value, (ends[0], ends[1]) if ends else None, attacker, blind, total)
    return Figure(value, _interval(found, counted, 0.0), attacker, blind, total)


def share_difference(gained: Sequence[float], places: Sequence[float], attacker: str) -> Figure:
    """The difference of two shares of the same places, from the hits gained and the places of each document.

    The interval is at 95 %, from a bootstrap over documents.
    """
    import numpy as np

    more, counted = np.array(gained, dtype=np.float64), np.array(places, dtype=np.float64)
    value = float(more.sum() / counted.sum())
    return Figure(value, _interval(more, counted, -1.0), attacker, places=int(counted.sum()))


def _interval(hits: "np.ndarray", places: "np.ndarray", lowest: float) -> tuple[float, float] | None:
    """Both ends of a share, by a bootstrap over documents (D,); from ``lowest`` to 1."""
    from tasks.audit.resampling import bootstrap, interval_of
    from tasks.language_model.evaluation.bootstrap import ratio_of_sums

    shares = bootstrap(lambda drawn: ratio_of_sums(drawn @ hits, drawn @ places), len(places), _SAMPLES, _SEED)
    return interval_of(float(hits.sum() / places.sum()), shares, len(places), _CONFIDENCE, (lowest, 1.0))
