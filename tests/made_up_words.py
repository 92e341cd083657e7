"""Words that no list has, as many as a test wants: of letters alone, since no fill has figures."""

_LETTERS = str.maketrans("0123456789", "abcdefghij")


def made_up_words(number: int) -> list[str]:
    """``wordb``, ``wordc``, ... ``wordba``: the numbers from 1 on, a letter for each digit."""
    return [f"word{index}".translate(_LETTERS) for index in range(1, number + 1)]
