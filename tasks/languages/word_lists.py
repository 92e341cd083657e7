"""Word frequencies of languages, from the published lists of the package ``wordfreq`` (data CC BY-SA 4.0)."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, TypeVar

from pydantic import AfterValidator

from tasks.corpora.words import fold

ROMANISED_HINDI = "hi-Latn"
"""Hindi in Latin letters (BCP 47): the list of Hindi, respelled as people type it."""
Codes = TypeVar("Codes", bound=Sequence[str])


def codes_of(pair: str) -> list[str]:
    """The languages of a pair such as ``de,tr``."""
    return [code.strip() for code in pair.split(",")]


def list_form(word: str) -> str:
    """The look-up form of a word: folded, one ``i`` for a Turkish ``İ`` (Unicode folds it to two signs).

    Only the lists by language use it. Other word counts, and models trained on them, have Unicode's form.
    """
    return fold(word).replace("i\u0307", "i")


@cache
def word_list(language: str) -> dict[str, float]:
    """Share of each word among the words of a language (ISO 639-1); empty where ``wordfreq`` has no list of it.

    The package itself substitutes the nearest language for a missing one.
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
    """The share of a form on a list. ``l'équipe`` is two words there, with the product of both shares.

    If more letters precede the apostrophe than follow it, the last part is an ending; ``mixed_words`` handles it.
    """
    before, apostrophe, after = form.partition("'")
    if not apostrophe or form in words or len(before) > len(after):
        return words.get(form, 0.0)
    return words.get(before, 0.0) * words.get(after, 0.0)


def listed_languages() -> list[str]:
    """The languages that have a list."""
    from wordfreq import available_languages

    return sorted([*available_languages("best"), ROMANISED_HINDI])


def several(languages: Codes) -> Codes:
    """The codes unchanged if there are none, or at least two different ones with at least one listed. Otherwise
    raise ``ValueError``."""
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
"""A setting: the languages that a text mixes (ISO 639-1); empty: a single language, without any treatment."""
