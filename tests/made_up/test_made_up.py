"""Made-up values: every form can be filled, the parts of one thing agree, and check digits are right."""

import random

import pytest

from tasks.labelled_text.slots import SLOT_LABELS
from tasks.made_up.articles import article_for
from tasks.made_up.made_up import MadeUp, all_values
from tasks.made_up.thing import Thing
from tasks.made_up.writing import written


@pytest.mark.parametrize("part", ["train", "test"])
def test_every_form_and_every_kind_of_slot_can_be_filled(part):
    made_up = MadeUp(part)
    for pool in made_up.forms.values():
        for form in pool.values:
            value = written(form, random.Random(form)).format_map(Thing(made_up, random.Random(form)))
            assert value, form
            assert not set("{}~#") & set(value.replace("Apt. #", "")), form
    for kind in SLOT_LABELS:
        assert Thing(made_up, random.Random(1)).make(kind.lower().removesuffix("_female").removesuffix("_male"))


def test_check_digits_of_cards_and_accounts_are_right():
    random_numbers = random.Random(5)
    for _ in range(100):
        digits = list(map(int, filter(str.isdigit, Thing(all_values(), random_numbers).make("credit_card"))))
        doubled = [digit * 2 if place % 2 else digit for place, digit in enumerate(reversed(digits))]
        assert sum(number // 10 + number % 10 for number in doubled) % 10 == 0
        account = Thing(all_values(), random_numbers).make("iban").replace(" ", "")
        assert int("".join(str(int(character, 36)) for character in account[4:] + account[:4])) % 97 == 1


@pytest.mark.parametrize(
    ("article", "words"),
    [
        ("an", "Austrian Uzbek hour uncle MBA FBI 8-year-old 18 11th 80 Élysée iPhone undertaker Honest"),
        ("a", "Dane European Ukrainian Ugandan unit Uruguayan user UN 1 one university house"),
    ],
)
def test_the_indefinite_article_goes_by_the_sound(article, words):
    assert [word for word in words.split() if article_for(word) != article] == []
