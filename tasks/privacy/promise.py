"""What a fill promises of the words that were masked: the epsilon of what leaves, not of a step on the way to it.

A fill is made of masked text, public data and a public seed, unless something reads the sidecar. Where nothing does,
other words behind the markers would have given the same bytes: epsilon is 0. Where noisy counts do and nothing else
does, their epsilon is that of the fill (post-processing; Dwork and Roth 2014, proposition 2.1). Surrogates, originals
that are forbidden and classes that are matched read masked words as they are: no epsilon holds. That of word
replacement (``metric``) is for each unit of distance between two words, and none of a line's.

It is a promise about the words behind the markers, given the masked text. What was not masked stands there in clear.
"""

from tasks.filling.settings import CountingMethod, FillingMethod


def epsilon_of(settings: FillingMethod) -> float | None:
    """Epsilon of a fill by one of the methods of ``filling``, and of all of its ``copies`` together; ``None``: none is
    promised."""
    if settings.follows_originals:
        return None
    counts = settings.counts if isinstance(settings, CountingMethod) else None
    return counts.epsilon if counts else 0.0
