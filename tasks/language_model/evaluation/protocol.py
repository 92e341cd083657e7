"""The protocol of a perplexity and its one-line signature, which is reported with every number (docs/perplexity.md)."""

import hashlib
from dataclasses import dataclass
from typing import Literal

from tasks.language_model.normalisation import NORMALISATION, normalise

MarkerRule = Literal["in_vocabulary", "renormalised", "none"]
"""``in_vocabulary``: markers such as ``[MASK]`` are tokens that a model may predict, as in the paper; their probability
is lost on unmasked text. ``renormalised``: their probability is shared among all other tokens. ``none``: the model has
no markers."""

_PROBES = (
    "It's Tom’s Chicago-based 'e-mail', isn''t it?  $5.30, 10:30 & 50%",
    "ﬁne Ｆｕｌｌ straße İstanbul ΟΔΟΣ na\u00efve nai\u0308ve soft\u00adhyphen zero\u200bwidth 東京 हिन्दी e\u0301",
    "½ #tag @user_name",
    "[MASK] http://example.org/a?b=c don`t ´tis rock'n'roll O'Brien's ''quoted'' \u0301 U.S. 3,000.5",
)


def normalisation_name() -> str:
    """The version of the normalisation, and the first digits of a hash of its output for hard cases."""
    words = "\n".join("\t".join(normalise(probe)) for probe in _PROBES)
    return f"{NORMALISATION}:{hashlib.sha256(words.encode()).hexdigest()[:6]}"


@dataclass(frozen=True)
class Protocol:
    """The choices of a model and an evaluation; the rest of the protocol is fixed (``signature``)."""

    vocabulary: str
    """Hash of the vocabulary or tokeniser."""
    vocabulary_size: int
    """Number of its tokens."""
    unknown_rate: float | None
    """Share of the text's words outside the vocabulary; ``None`` for a model that can spell every word."""
    maximum_tokens: int | None
    """Longest window that a sentence is read in; ``None``: no limit."""
    stride: int | None
    """Number of targets that each further window of a long sentence adds."""
    markers: MarkerRule
    words: int = 0
    """Number of words of the text, where unknown words are counted."""

    @property
    def signature(self) -> str:
        """The protocol in one line: named fields, separated by ``|``."""
        unknown = "none" if self.unknown_rate is None else f"counted,rate={self.unknown_rate:.2%}"
        window = "" if self.maximum_tokens is None else f",window={self.maximum_tokens},stride={self.stride}"
        return "|".join(
            (
                "ppl",
                "unit=word",
                f"norm={normalisation_name()}",
                f"vocab={self.vocabulary[:8]},size={self.vocabulary_size}",
                "eos=counted",
                f"unk={unknown}",
                f"context=sentence{window}",
                f"markers={self.markers}",
            )
        )


def differing_fields(signature: str, other: str) -> list[str]:
    """The names of the fields in which two signatures differ; empty where numbers are comparable."""
    first, second = _fields(signature), _fields(other)
    return [name for name in dict.fromkeys((*first, *second)) if first.get(name) != second.get(name)]


def _fields(signature: str) -> dict[str, str]:
    return {name: value for name, _, value in (part.partition("=") for part in signature.split("|"))}
