"""Recall, precision and F2: to miss a private word is worse than to mask one too many.

F2 = 5 P R / (4 P + R) is van Rijsbergen's F with beta 2: recall counts twice as much as precision. What is undefined
is ``None``, never 0: recall without anything private, precision without anything masked. F2 is 0 where recall is 0,
whatever the precision (so a technique that masks nothing has 0, not nothing), and undefined where recall is.
"""

BETA = 2


def share(part: int, whole: int) -> float | None:
    """``part / whole``; ``None`` where the whole is 0."""
    return part / whole if whole else None


def f2(recall: float | None, precision: float | None) -> float | None:
    """F2 of a recall and a precision."""
    if recall is None or recall == 0:
        return recall
    # A recall above 0 means that something was masked, so there is a precision.
    if precision is None:
        return None
    return (1 + BETA**2) * precision * recall / (BETA**2 * precision + recall)


def rates(found: int, gold: int, right: int, masked: int) -> dict[str, float | None]:
    """Recall ``found / gold``, precision ``right / masked`` and their F2."""
    recall, precision = share(found, gold), share(right, masked)
    return {"recall": recall, "precision": precision, "f2": f2(recall, precision)}
