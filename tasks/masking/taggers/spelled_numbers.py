"""Numbers and times in words that identify nobody: ``one``, ``two of them``, ``a year``, ``today``, ``last night``.

Models trained on OntoNotes tag them as CARDINAL, DATE and TIME, and masking them costs context without protecting
anybody. An entity of class NUMBER or DATE stays unmasked if all of this holds (``spelled_numbers: keep``, the default):

- It has no digit.
- Every word of it is a number word or on the shipped allow list, which holds no names, months, weekdays and feasts.
  So ``last year`` stays; ``last March``, ``Christmas`` and a name that was tagged as a date are masked.
- No word of it is capitalised, unless it opens the sentence.
- It holds at most two number words, and two that follow each other are one number (``twenty five``, ``two hundred``).
  So years, telephone numbers and clock times that are read out (``nineteen eighty four``, ``five five five``) are
  masked; number words next to the entity count as well.
"""

from functools import cache

from tasks.corpora.words import fold

UNITS = frozenset(
    "one two three four five six seven eight nine first second third fourth fifth sixth seventh eighth ninth".split()
)
TENS = frozenset(
    "twenty thirty forty fifty sixty seventy eighty ninety "
    "twenties thirties forties fifties sixties seventies eighties nineties".split()
)
MULTIPLES = frozenset(
    "hundred thousand million billion trillion dozen hundreds thousands millions billions trillions dozens".split()
)
NUMBER_WORDS = (
    UNITS
    | TENS
    | MULTIPLES
    | frozenset(
        "zero ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen tenth eleventh twelfth "
        "half once twice thrice".split()
    )
)
_READ_AS_ZERO = frozenset(("oh", "o"))
_TIME_WORDS = frozenset(
    "hourly daily quarterly yearly annum midday fortnight quarter quarters spring summer autumn winter".split()
)
"""Words of time that the allow list leaves out because they are rare or also names."""
_MONTH_ON_ALLOW_LIST = "may"
_MOST_NUMBER_WORDS = 2
_OPENERS = "\"'“”‘’([{*_-–— \t"


def is_harmless(line: str, words: list[tuple[int, int]], touched: range) -> bool:
    """Whether an entity, given as the indices of its words, stays unmasked by the rule above.

    ``words`` are the spans of all words of the line. An entity without words is masked.
    """
    if not touched:
        return False
    start, end = words[touched[0]][0], words[touched[-1]][1]
    if any(character.isdigit() for character in line[start:end]):
        return False
    for index in touched:
        word = line[words[index][0] : words[index][1]]
        folded = fold(word)
        if folded not in _harmless_words():
            return False
        if not word.islower() and not _opens_sentence(line, words[index][0]):
            return False
    return _is_small_number(line, words, touched)


def _is_small_number(line: str, words: list[tuple[int, int]], touched: range) -> bool:
    first, last = touched[0], touched[-1]
    while first > 0 and _word(line, words, first - 1) in NUMBER_WORDS and _joined(line, words, first):
        first -= 1
    while last + 1 < len(words) and _word(line, words, last + 1) in NUMBER_WORDS and _joined(line, words, last + 1):
        last += 1
    numbers = [
        index
        for index in range(first, last + 1)
        if (word := _word(line, words, index)) in NUMBER_WORDS or (word in _READ_AS_ZERO and index in touched)
    ]
    if len(numbers) > _MOST_NUMBER_WORDS:
        return False
    if len(numbers) < 2 or numbers[1] - numbers[0] > 1:
        return True
    before, after = (_word(line, words, index) for index in numbers)
    return after in MULTIPLES or "half" in (before, after) or (before in TENS and after in UNITS)


def _word(line: str, words: list[tuple[int, int]], index: int) -> str:
    return fold(line[slice(*words[index])])


def _joined(line: str, words: list[tuple[int, int]], index: int) -> bool:
    """Whether only spaces, commas or hyphens precede a word."""
    return not line[words[index - 1][1] : words[index][0]].strip(" \t,-")


def _opens_sentence(line: str, start: int) -> bool:
    before = line[:start].rstrip(_OPENERS)
    return not before or before[-1] in ".!?…:;"


@cache
def _harmless_words() -> frozenset[str]:
    from tasks.corpora.word_list import read_word_list
    from tasks.masking.lists.allow_list import SHIPPED_LIST

    return (read_word_list(SHIPPED_LIST).words - {_MONTH_ON_ALLOW_LIST}) | NUMBER_WORDS | _TIME_WORDS
