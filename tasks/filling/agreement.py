"""Agreement of the indefinite article with the next word, if one of the two is a fill: never "an university".

The change also protects: an ``an`` that does not fit its fill would reveal the sound of the masked word. Only English
articles change, not the ``a`` of a line in another language (``voy a [MASK]``). There must be exactly one space between
``a`` and the fill. ``A`` is an article only at the start of a sentence or among capitals (not in ``vitamin A [MASK]``).
"""

import re
from collections.abc import Sequence

from tasks.corpora.words import folded_words
from tasks.filling.masked_sentence import ARTICLE, MaskedSentence, all_capitals, starts_sentence, with_article
from tasks.made_up.articles import article_for

_NEXT_WORD = re.compile(r" [\"“‘'(]?(\w[\w'’.]*)")
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
    """The texts and the words of a line, with agreeing articles."""
    texts, agreeing = list(sentence.texts), list(words)
    is_english: bool | None = None
    capitals = False
    # From the right: an article that is a fill must be final before the text before it.
    for index in range(len(agreeing) - 1, -1, -1):
        word, following, found = agreeing[index], None, ARTICLE.search(texts[index])
        if word in ("a", "A", "an", "An", "AN"):
            following = _next_word(texts, agreeing, index)
        if following is None and found is None:
            continue
        if is_english is None:
            is_english, capitals = _is_english(sentence.texts), all_capitals(sentence.texts)
        if not is_english:
            break
        if following is not None:
            agreeing[index] = _article(word[0], following, capitals=capitals)
        if found is None:
            continue
        before = texts[index][: found.start(1)]
        # By its case an article, not the name of a letter.
        if found[1] == "a" or capitals or starts_sentence(before, first=index == 0):
            article = _article(found[1], agreeing[index], capitals=capitals and found[1] == "A")
            texts[index] = with_article(texts[index], article)
    return texts, agreeing


def _is_english(texts: Sequence[str]) -> bool:
    """Whether more words are frequent English words than frequent words of other languages."""
    known = [word for text in texts for word in folded_words(text)]
    return sum(word in _ENGLISH for word in known) > sum(word in _OTHER_LANGUAGES for word in known)


def _article(first_letter: str, word: str, *, capitals: bool) -> str:
    return first_letter + (("N" if capitals else "n") if article_for(word) == "an" else "")


def _next_word(texts: Sequence[str], words: Sequence[str], index: int) -> str | None:
    """The word after a fill: unmasked or a fill itself."""
    text = texts[index + 1]
    if text == " " and index + 1 < len(words):
        return words[index + 1]
    found = _NEXT_WORD.match(text)
    return found[1] if found else None
