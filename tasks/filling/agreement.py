"""The indefinite article agrees with the word behind it, where one of the two is a fill: "an university" is none.

This is the one thing besides markers that filling changes in a line. It follows from the masked text and the fill, so
that whatever holds of these holds of the filled text too; and it says less than leaving it: the masked text's ``an``
tells the sound of the word that was masked, and an ``an`` that does not fit its fill would carry that on.

Only the English article is meant. So nothing is touched in a line whose known words are as much those of another
language, where ``a`` is a preposition or means *and* (``voy a [MASK]``); ``a`` stands alone, with one space between it
and the fill; and ``A`` is an article at the start of a sentence alone, or among capitals (``vitamin A [MASK]``).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tasks.corpora.words import folded_words
from tasks.filling.masked_sentence import ARTICLE, MaskedSentence, all_capitals, starts_sentence, with_article
from tasks.labelled_text.articles import article_for

_WORD_BEHIND = re.compile(r" [\"“‘'(]?(\w[\w'’.]*)")
_ENGLISH = frozenset(
    (
        "the of and to is in that it for with as at by from this be are have has had not but they you he she we his "
        "her my your their its i it's i'm i've i'd don't there all can would will when who which about like know think "
        "just so get got did does been were was make want need really good very if or up out some him them us our how "
        "going said could an than then what where why into over only also after before because more most much many no "
        "yes do on me too well any"
    ).split()
)
_OTHER_LANGUAGES = frozenset(
    (
        # Spanish, Portuguese, Italian, French
        "el la los las un una que de del y en por para su se lo le mi tu está pero muy como más si voy va vamos él nos "
        "te al os um uma em não com ao à seu da dos das eu ele il gli che di è non della sono ho hai nel alla les des "
        "et est dans pas pour vous nous elle je ce une sur avec qui ne du au "
        # German, Dutch, Swedish, Hungarian, Polish, Czech
        "der das und ist nicht ich er sie es wir ihr ein eine zu auf mit für dem im von bei hat haben sind aber het "
        "een en niet ik dat voor zijn att det som är inte jag az egy és nem hogy na się nie jest v že"
    ).split()
)


def agreed(sentence: MaskedSentence, words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The texts and the words of a line, where articles agree."""
    texts, agreeing = list(sentence.texts), list(words)
    known: _KnownWords | None = None
    # From the right: an article that is a fill is settled before the text in front of it is.
    for index in range(len(agreeing) - 1, -1, -1):
        behind = None
        if agreeing[index] in ("a", "A", "an", "An", "AN"):
            behind = _behind(texts, agreeing, index)
        found = ARTICLE.search(texts[index])
        if behind is None and found is None:
            continue
        known = known or _KnownWords.of(sentence)
        if not known.are_english:
            continue
        if behind is not None:
            agreeing[index] = _article(agreeing[index][0], behind, capitals=known.are_capitals)
        if found is not None and known.hold_article(texts[index][: found.start(1)], found[1], first=index == 0):
            capitals = known.are_capitals and found[1] == "A"
            texts[index] = with_article(texts[index], _article(found[1], agreeing[index], capitals=capitals))
    return texts, agreeing


@dataclass(frozen=True)
class _KnownWords:
    """What the words of a line that were not masked say of its articles."""

    are_english: bool
    """Whether more of them are frequent English words than frequent words of other languages."""
    are_capitals: bool

    @classmethod
    def of(cls, sentence: MaskedSentence) -> "_KnownWords":
        known = [word for text in sentence.texts for word in folded_words(text)]
        english = sum(word in _ENGLISH for word in known) - sum(word in _OTHER_LANGUAGES for word in known)
        return cls(english > 0, all_capitals(sentence.texts))

    def hold_article(self, before: str, letter: str, *, first: bool) -> bool:
        """Whether an ``a`` or ``A`` behind this text is an article by its case: no name of a letter."""
        return letter == "a" or self.are_capitals or starts_sentence(before, first=first)


def _article(first_letter: str, word: str, *, capitals: bool) -> str:
    return first_letter + (("N" if capitals else "n") if article_for(word) == "an" else "")


def _behind(texts: Sequence[str], words: Sequence[str], index: int) -> str | None:
    """The word behind a fill, known or a fill itself."""
    text = texts[index + 1]
    if text == " " and index + 1 < len(words):
        return words[index + 1]
    found = _WORD_BEHIND.match(text)
    return found[1] if found else None
