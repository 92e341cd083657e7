"""How frequent a word is in a language, by the published lists of the package ``wordfreq`` (data CC BY-SA 4.0)."""

from functools import cache


@cache
def word_list(language: str) -> dict[str, float]:
    """Share of each word among the words of a language (ISO 639-1); empty where ``wordfreq`` has no list of it.

    The package itself answers for a language that it does not have with the nearest one that it has.
    """
    from wordfreq import available_languages, get_frequency_dict

    if language not in available_languages("best"):
        return {}
    frequencies: dict[str, float] = get_frequency_dict(language, "best")
    total = sum(frequencies.values())
    return {word: share / total for word, share in frequencies.items()}


def listed_languages() -> list[str]:
    """Languages that have a list."""
    from wordfreq import available_languages

    return sorted(available_languages("best"))
