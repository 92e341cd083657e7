"""Closed groups of words that stand for each other: a month for a month, a currency for a currency.

The words of a group have the same part of speech in a sentence, so ``million`` does not stand for ``dozen``.
Every word of a group is as likely, the original too: a surrogate tells the group and nothing of the word, however many
of them are seen. No group has fewer members than ``FEWEST``. The same holds of those members that are not on the list
of kept words, where only such words are masked: where too few are left, the word counts as one of no group.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from tasks.corpora.words import fold

FEWEST = 3
"""So many words that may be the original a group has at least."""

MONTHS = "January February March April May June July August September October November December".split()
WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
TITLES = "Mr Mrs Ms Miss Dr Prof Sir Madam".split()
"""Words before a name; of no group, since they tell who is meant."""
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
    # The language has no fourth.
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
_BESIDE_AN_HOUR = "o'clock sharp today tomorrow tonight yesterday".split()
_BETWEEN = (
    _BESIDE_AN_HOUR,
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
    # The others are looked up in groups of their own.
    "than or by to".split(),
    "old long lasting".split(),
)
"""What stands between the words of a date or sum, as part of it."""

GROUPS_OF_CLASS: Mapping[str, tuple[Sequence[str], ...]] = {
    "DATE": (*_DAYS, *_TIMES),
    "NUMBER": _NUMBERS,
    "MONEY": (*_MANY, *_MONEY),
}
"""The groups whose words a class may have."""
GROUPS: tuple[Sequence[str], ...] = (*_DAYS, *_NUMBERS, *_TIMES, *_MONEY, *_ERAS, *_BETWEEN)
"""All groups, in the order in which a word is looked up."""
STAND_INS: tuple[tuple[Sequence[str], Sequence[str]], ...] = (("am pm a.m p.m".split(), _BESIDE_AN_HOUR),)
"""Words of a kind that has but two, whatever their spelling, and words of which any may stand for any of them."""


def no_list(_: str) -> bool:
    """The list of kept words of a technique that has none: no word is on it."""
    return False


def group_of(original: str, groups: Iterable[Sequence[str]], on_list: Callable[[str], bool] = no_list) -> Sequence[str]:
    """What may stand for a word of one of the groups: all words of the first; empty for a word of none.
    ``on_list``: whether a word is on the list of kept words."""
    folded = fold(original)
    for group in groups:
        if folded in map(fold, group) and _may_be_another(original, group, on_list):
            return group
    return []


def stand_ins(original: str, on_list: Callable[[str], bool] = no_list) -> Sequence[str]:
    """What may stand for a word of ``STAND_INS``; empty for another word."""
    folded = fold(original)
    for words, others in STAND_INS:
        if folded in map(fold, words) and _may_be_another(original, words, on_list):
            return others
    return []


def _may_be_another(original: str, group: Sequence[str], on_list: Callable[[str], bool]) -> bool:
    """Whether enough words of a group may be the original, for who knows what is masked at all."""
    return on_list(original) or sum(not on_list(word) for word in group) >= FEWEST
