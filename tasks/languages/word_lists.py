"""How frequent a word is in a language, by the published lists of the package ``wordfreq`` (data CC BY-SA 4.0)."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, TypeVar

from pydantic import AfterValidator

from tasks.corpora.words import fold

ROMANISED_HINDI = "hi-Latn"
"""Hindi in Latin letters (BCP 47): the list of Hindi, as people would spell its words."""
Codes = TypeVar("Codes", bound=Sequence[str])


def codes_of(pair: str) -> list[str]:
    """The languages of ``de,tr``."""
    return [code.strip() for code in pair.split(",")]


def list_form(word: str) -> str:
    """What is looked up of a word: folded, and the Turkish ``İ`` an ``i``, not the two that Unicode makes of it.

    Lists by language alone go by it: other counts of words, and what was trained on them, have Unicode's form.
    """
    return fold(word).replace("i\u0307", "i")


@cache
def word_list(language: str) -> dict[str, float]:
    """Share of each word among the words of a language (ISO 639-1); empty where ``wordfreq`` has no list of it.

    The package itself answers for a language that it does not have with the nearest one that it has.
    """
    from wordfreq import available_languages, get_frequency_dict

    if language == ROMANISED_HINDI:
        from tasks.languages.romanised_hindi import romanised

        return romanised(word_list("hi"))
    if language not in available_languages("best"):
        return {}
    frequencies: dict[str, float] = get_frequency_dict(language, "best")
    total = sum(frequencies.values())
    return {word: share / total for word, share in frequencies.items()}


def share_on_list(words: Mapping[str, float], form: str) -> float:
    """Share of a form on a list, in which ``l'équipe`` is two words: it has the product of the shares of both.

    Where more letters stand before the apostrophe than behind it, what is behind is no word but an ending: that is left
    to ``mixed_words``.
    """
    before, apostrophe, behind = form.partition("'")
    if not apostrophe or form in words or len(before) > len(behind):
        return words.get(form, 0.0)
    return words.get(before, 0.0) * words.get(behind, 0.0)


def listed_languages() -> list[str]:
    """Languages that have a list."""
    from wordfreq import available_languages

    return sorted([*available_languages("best"), ROMANISED_HINDI])


def several(languages: Codes) -> Codes:
    """The codes as they are: none, or two and more that differ, of which one at least has a list; else
    ``ValueError``."""
    if not languages:
        return languages
    if len(languages) < 2 or len(set(languages)) < len(languages) or not all(languages):
        raise ValueError(f"languages {','.join(languages)!r}: give two different codes or more, such as 'de,tr'")
    listed = listed_languages()
    if not set(languages) & set(listed):
        raise ValueError(
            f"languages {','.join(languages)!r}: no list of words for any of them; one at least needs one, of "
            f"{', '.join(listed)}"
        )
    return languages


Languages = Annotated[list[str], AfterValidator(several)]
"""A setting: the languages that a text mixes (ISO 639-1); empty: one alone, and nothing is done about it."""
