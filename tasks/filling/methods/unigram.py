"""Unigram, the control without context (not in the paper): a word that is not on the list, by its generic frequency.

The advantage of a filler over this control comes from reading the sentence. The advantage of this control over the
masked text comes only from the share of words that are not on the list.
"""

from typing import TYPE_CHECKING, ClassVar, Literal

from tasks.filling.settings import CountingMethod

if TYPE_CHECKING:
    from tasks.filling.masked_sentence import Casing
    from tasks.filling.prepared_fill import PreparedFill
    from tasks.filling.unigram_filler import UnigramFiller


class Unigram(CountingMethod):
    """Control without context: a word that is not on the list, drawn by its frequency in the generic corpus."""

    title: ClassVar[str] = "Unigram"
    sentence: ClassVar[str] = "Control: a maskable word by its frequency, without any context; not in the paper."
    kind: Literal["unigram"]

    def build(self, prepared: "PreparedFill") -> "tuple[UnigramFiller, Casing]":
        """A draw by frequency, and the usual case of the word counts."""
        from tasks.filling.unigram_filler import UnigramFiller

        words, learned = prepared.words, prepared.learned
        drawn = words.off_list(learned.frequencies or words.frequencies, learned.languages)
        return UnigramFiller(drawn, prepared.randomness, prepared.kinds), words.casing(is_cased=False)
