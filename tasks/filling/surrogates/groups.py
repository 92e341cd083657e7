"""Closed groups of words that replace each other, such as months and currencies.

The words of a group have the same part of speech, so ``million`` does not replace ``dozen``. Every word of a group is
equally likely, the original too. So a surrogate reveals the group, but nothing else about the word, in any number of
samples. Each group has at least ``FEWEST`` members. If a list of never-masked words exists, each group needs as many
members that are not on it. Otherwise the word counts as a word without a group.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from tasks.corpora.words import fold

FEWEST = 3
"""Minimum number of words of a group that may be the original."""

MONTHS = "January February March April May June July August September October November December".split()
WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
TITLES = "Mr Mrs Ms Miss Dr Prof Sir Madam".split()
"""Words before a name; in no group, since they show who is meant."""
ONES = "one two three four five six seven eight nine".split()
MULTIPLES = "hundred thousand million billion trillion".split()
CURRENCIES = "dollars euros pounds francs bucks pesos rupees roubles crowns dinars".split()
_UNITS_OF_TIME = "second minute hour day week month year decade".split()

_DAYS = (
    MONTHS,
    [month[:3] for month in MONTHS],
    WEEKDAYS,
    [f"{day}s" for day in WEEKDAYS],
    [day[:3] for day in WEEKDAYS],
)
_MANY = (MULTIPLES, [*(f"{word}s" for word in MULTIPLES), "dozens"])
_NUMBERS = (
    ONES,
    "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split(),
    "twenty thirty forty fifty sixty seventy eighty ninety".split(),
    "twenties thirties forties fifties sixties seventies eighties nineties".split(),
    "first second third fourth fifth sixth seventh eighth ninth tenth".split(),
    *_MANY,
    "once twice thrice twofold threefold fourfold".split(),
    "half quarter third fifth sixth eighth tenth".split(),
    "halves quarters thirds fifths sixths eighths tenths".split(),
)
_TIMES = (
    [*_UNITS_OF_TIME, "century"],
    [*(f"{word}s" for word in _UNITS_OF_TIME), "centuries", "weekends"],
    "semester season term trimester session".split(),
    "semesters seasons terms trimesters sessions".split(),
    "yesterday today tomorrow tonight".split(),
    "morning afternoon evening night noon midnight dawn dusk".split(),
    "mornings afternoons evenings nights weekends".split(),
    "hourly daily nightly weekly monthly quarterly yearly annually".split(),
    "spring summer autumn winter fall".split(),
    "Christmas Easter Thanksgiving Halloween Hanukkah Passover Ramadan Diwali".split(),
    "last next past previous".split(),
    "coming following upcoming".split(),
    "this that each every".split(),
    "ago earlier later beforehand afterwards".split(),
    # English has no fourth word here.
    "early mid late".split(),
)
_MONEY = (
    CURRENCIES,
    "dollar euro pound franc buck peso rupee rouble crown dinar".split(),
    "cents pence pennies centimes kopecks centavos".split(),
    "cent penny centime kopeck centavo".split(),
    "USD EUR GBP CHF JPY CAD AUD SEK".split(),
)
_ERAS = ("AD BC CE BCE".split(),)
_AFTER_AN_HOUR = "o'clock sharp today tomorrow tonight yesterday".split()
_BETWEEN = (
    _AFTER_AN_HOUR,
    "a an the each every some".split(),
    "of in on at by from to until since during".split(),
    "and or plus minus".split(),
    "about around nearly almost roughly approximately".split(),
    "over under above below".split(),
    "only just barely merely exactly".split(),
    "full whole entire complete solid".split(),
    "beginning start middle end close".split(),
    "few several many numerous countless".split(),
    "couple handful bunch score dozen".split(),
    "more less fewer".split(),
    # The other words of this group are looked up in earlier groups.
    "than or by to".split(),
    "old long lasting".split(),
)
"""Words between the words of a date or sum, as parts of it."""

GROUPS_OF_CLASS: Mapping[str, tuple[Sequence[str], ...]] = {
    "DATE": (*_DAYS, *_TIMES),
    "NUMBER": _NUMBERS,
    "MONEY": (*_MANY, *_MONEY),
}
"""The groups of words that each class may have."""
GROUPS: tuple[Sequence[str], ...] = (*_DAYS, *_NUMBERS, *_TIMES, *_MONEY, *_ERAS, *_BETWEEN)
"""All groups, in the order in which a word is looked up."""
STAND_INS: tuple[tuple[Sequence[str], Sequence[str]], ...] = (("am pm a.m p.m".split(), _AFTER_AN_HOUR),)
"""Words of which only two kinds exist (am, pm), in all spellings, and the words that may replace them."""


def no_list(_: str) -> bool:
    """False: the list of never-masked words of a technique without a list is empty."""
    return False


def group_of(original: str, groups: Iterable[Sequence[str]], on_list: Callable[[str], bool] = no_list) -> Sequence[str]:
    """The first group that has the word, or an empty list. All its words may replace the word.
    ``on_list``: whether a word is on the list of never-masked words."""
    folded = fold(original)
    for group in groups:
        if folded in map(fold, group) and _may_be_another(original, group, on_list):
            return group
    return []


def stand_ins(original: str, on_list: Callable[[str], bool] = no_list) -> Sequence[str]:
    """The words that may replace a word of ``STAND_INS``; empty for another word."""
    folded = fold(original)
    for words, others in STAND_INS:
        if folded in map(fold, words) and _may_be_another(original, words, on_list):
            return others
    return []


def _may_be_another(original: str, group: Sequence[str], on_list: Callable[[str], bool]) -> bool:
    """Whether enough words of a group may be the original, from the view of a reader who knows the list."""
    return on_list(original) or sum(not on_list(word) for word in group) >= FEWEST
