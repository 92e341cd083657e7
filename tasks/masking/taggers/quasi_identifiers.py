"""Quasi-identifiers by rules: amounts of money, durations and ages, figures, and occupations, for text in English.

Each says little of a person, and several together who it is. Named-entity models leave most of them out. Masking all
figures costs context, so this tagger is for documents about persons, such as reports and decisions, and not for chat
(docs/research/anonymisers.md). Occupations are those of the package faker and of ``tasks.made_up``.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache

from tasks.masking.settings import QuasiIdentifierTagger
from tasks.masking.taggers.spelled_numbers import MULTIPLES, NUMBER_WORDS
from tasks.masking.taggers.tagger import EntitySpan, Tagger

_FIGURE = r"\d(?:[\d.,/\u00a0 x-]*\d)?"
_SPELLED = rf"(?:{'|'.join(sorted(NUMBER_WORDS, key=len, reverse=True))})"
_MULTIPLE = rf"(?:[ -](?:{'|'.join(sorted(MULTIPLES, key=len, reverse=True))}))?"
_NUMBER = rf"(?:{_FIGURE}{_MULTIPLE}|{_SPELLED}(?:[ -](?:and )?{_SPELLED})*)"
_CURRENCIES = (
    "euros? dollars? pounds? sterling francs? crowns? kron(?:or|er|a) zlotys? lir[ae]s? marks? roubles? rubles? "
    "hryvnias? forints? levs? lei kunas? shillings? yen yuan rupees? pesos? reais cents? pence"
)
_CURRENCY = rf"(?:[A-Z]{{3}}\b|[€$£¥₹]|(?:{'|'.join(_CURRENCIES.split())})\b)"
_UNITS = "years? months? weeks? days? hours? minutes? seconds?"
_ABOUT = r"(?<!\w)(?:(?:approximately|approx\.|nearly|almost|at least|more than|less than) )?"
_PATTERNS = {
    "MONEY": re.compile(
        rf"{_ABOUT}(?:(?:[A-Z]{{3}}|[A-Z]{{0,2}}[€$£¥₹]) ?{_FIGURE}{_MULTIPLE}"
        rf"|{_NUMBER} ?(?:[A-Z][a-z]+ )?{_CURRENCY}(?: \([A-Z]{{3}}\))?)"
    ),
    "DATE": re.compile(
        rf"{_ABOUT}{_NUMBER}(?:[ -]and[ -]a[ -]half)?[ -](?:{'|'.join(_UNITS.split())})(?:[ -]old)?\b", re.IGNORECASE
    ),
    "NUMBER": re.compile(rf"{_ABOUT}{_FIGURE}(?: ?%)?"),
}
_OCCUPATION = "MISCELLANEOUS"
_SHORTEST, _NO_OCCUPATIONS = 4, frozenset(("animal", "copy", "land", "other"))


class QuasiIdentifiers(Tagger):
    """See ``Tagger``."""

    name = "quasi_identifiers"
    languages = ("en",)
    entity_types = sorted((*_PATTERNS, _OCCUPATION))

    def __init__(self, settings: QuasiIdentifierTagger, threads: int = 1) -> None:
        """There is nothing to load."""

    def tag(self, lines: Iterable[str]) -> Iterator[tuple[str, list[EntitySpan]]]:
        """Each line with its entities."""
        patterns = {**_PATTERNS, _OCCUPATION: _occupations()}
        for line in lines:
            yield (
                line,
                [EntitySpan(*match.span(), name) for name, one in patterns.items() for match in one.finditer(line)],
            )


@cache
def _occupations() -> re.Pattern[str]:
    from faker.providers.job import Provider
    from faker.providers.job.en_US import Provider as American

    from tasks.made_up.pools import shipped_words

    found = {name.lower() for name in shipped_words()["job"]}
    for job in (*Provider.jobs, *American.jobs):
        # "Engineer, civil (consulting)" and "Advertising account executive/planner"
        found.update(name.strip().lower() for name in job.partition("(")[0].partition(",")[0].split("/"))
    names = sorted((name for name in found - _NO_OCCUPATIONS if len(name) >= _SHORTEST), key=len, reverse=True)
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})s?\b", re.IGNORECASE)
