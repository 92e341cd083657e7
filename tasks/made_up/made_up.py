"""The pools and forms of one part of generated text."""

from collections.abc import Mapping
from functools import cache, cached_property

from tasks.corpora.sources.document import Part
from tasks.made_up.pools import (
    LOCALE_WEIGHTS,
    Pool,
    cities,
    divided_pool,
    first_names,
    last_names,
    shipped_values,
    shipped_words,
)

_LOCALES_AND_GENDERS = [(locale, female) for locale in LOCALE_WEIGHTS for female in (True, False)]


class MadeUp:
    """Pools and forms of values."""

    def __init__(self, part: Part | None = None) -> None:
        """``part``: of generated text; ``None`` for all values."""
        self._part = part
        self._listed: dict[str, Pool] = {}

    def listed(self, name: str) -> Pool:
        """The cities, or the values of the list ``values/NAME.txt``."""
        if name not in self._listed:
            weighted = cities() if name == "cities" else {row[0]: 1.0 for row in shipped_values(name)}
            self._listed[name] = divided_pool(weighted, self._part)
        return self._listed[name]

    @cached_property
    def forms(self) -> Mapping[str, Pool]:
        """The weighted forms and words of each kind."""
        found: dict[str, dict[str, float]] = {
            kind: dict.fromkeys(words, 1.0) for kind, words in shipped_words().items()
        }
        for kind, form, *weight in shipped_values("forms"):
            forms = found.setdefault(kind, {})
            form = form.replace(r"\n", "\n")
            forms[form] = forms.get(form, 0.0) + float(weight[0] if weight else 1)
        return {kind: Pool(forms) for kind, forms in found.items()}

    @cached_property
    def first(self) -> Mapping[tuple[str, bool], Pool]:
        """First names by locale and gender (female or not)."""
        return {key: divided_pool(first_names(key[0], female=key[1]), self._part) for key in _LOCALES_AND_GENDERS}

    @cached_property
    def last(self) -> Mapping[tuple[str, bool], Pool]:
        """Last names by locale and gender (female or not)."""
        return {key: divided_pool(last_names(key[0], female=key[1]), self._part) for key in _LOCALES_AND_GENDERS}


@cache
def all_values() -> MadeUp:
    """All values, made once."""
    return MadeUp()
