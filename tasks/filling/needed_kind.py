"""Which kind of filler a method needs: some run with masked language models alone, one with causal ones alone."""

from dataclasses import dataclass

from tasks.filling.settings import FillingSettings

KINDS = {"masked_lm": "masked", "causal_lm": "causal"}
"""Kinds of fillers, as settings and as sentences name them."""
_NEEDED = {"free": "causal_lm", "log_linear": "masked_lm"}
"""Methods that run with one kind of filler alone, and which that is."""


@dataclass(frozen=True)
class Misfit:
    """What keeps a method from running with a kind of filler."""

    what: str
    """``method 'free'`` or ``order 'all_at_once'``."""
    needs: str
    """``masked`` or ``causal``."""
    remedy: str
    """What to take instead."""


def misfit(method: FillingSettings, kind: str) -> Misfit | None:
    """What keeps the method from running with fillers of the kind; ``None`` where nothing does."""
    needed = _NEEDED.get(method.kind, kind)
    if needed != kind:
        return Misfit(f"method {method.kind!r}", KINDS[needed], "take top_1, top_k or sample")
    order = getattr(method, "order", "left_to_right")
    if kind == "causal_lm" and order != "left_to_right":
        return Misfit(f"order {order!r}", KINDS["masked_lm"], "set order: left_to_right")
    return None
