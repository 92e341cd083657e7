import ipaddress
import random
import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tasks.filling.surrogates.figures import (
    YEARS,
    figure,
    other_characters,
    other_date,
)

SEEDS = range(40)


def test_figures_for_figures_and_letters_for_letters():
    for original in ["555-1234", "1,000.50", "10", "AB12-cd", "4111-1111-1111-1111"]:
        for seed in SEEDS:
            made = other_characters(original, random.Random(seed), letters=False)
            assert len(made) == len(original)
            assert made[0] != "0"
            for old, new in zip(original, made, strict=True):
                assert new.isdigit() if old.isdigit() else new == old
    # Only behind a zero another one may stand first.
    assert {other_characters("07", random.Random(seed), letters=False)[0] for seed in range(200)} == set("0123456789")
    assert re.fullmatch(r"[A-Z][a-z]-\d\d[a-z][A-Z]", other_characters("Ab-12éИ", random.Random(1), letters=True))


LETTERS = st.text(alphabet="aabAB李éИ5._", min_size=3) | st.text(max_size=30)


@given(original=LETTERS, seed=st.integers(0, 99))
def test_no_letter_beyond_ascii_survives(original, seed):
    made = other_characters(original, random.Random(seed), letters=True)
    assert [character for character in made if character.isalnum() and not character.isascii()] == []
    assert [character for character in made if unicodedata.category(character) in ("Mn", "Mc", "Me", "Cf")] == []


@given(label=st.sampled_from(["DATE", "NUMBER", "MONEY", "IDENTIFIER"]), ending=LETTERS, seed=st.integers(0, 99))
@example(label="DATE", ending="LAST0THI", seed=0)
def test_a_figure_with_letters_keeps_none_beyond_ascii(label, ending, seed):
    original = f"10:30{ending}" if seed % 2 else f"{ending}1990"
    made = figure(label, random.Random(seed), original)
    assert [character for character in made if character.isalpha() and not character.isascii()] == []


def test_a_card_number_still_passes_the_check_and_another_does_not_have_to():
    def luhn(number):
        doubled = [int(d) * (2 if place % 2 else 1) for place, d in enumerate(reversed(number))]
        return sum(sum(map(int, str(n))) for n in doubled) % 10

    assert luhn("4111111111111111") == 0
    made = [other_characters("4111111111111111", random.Random(seed), letters=False) for seed in SEEDS]
    assert {luhn(number) for number in made} == {0}
    others = [other_characters("4111111111111112", random.Random(seed), letters=False) for seed in SEEDS]
    assert len({luhn(number) for number in others}) > 1


def test_addresses_of_machines_stay_possible():
    for original in ["10.0.0.255", "192.168.100.1", "8.8.8.8", "172.16.254.3:8080", "::ffff:192.0.2.128"]:
        for seed in SEEDS:
            for letters in (True, False):
                made = other_characters(original, random.Random(seed), letters=letters)
                address = made.rpartition(":")[2] if original.startswith(":") else made.partition(":")[0]
                assert ipaddress.IPv4Address(address)
    for original in ["2001:db8::1", "fe80::dead:beef:cafe:face", "2001:0db8:85a3:0000:0000:8a2e:0370:7334"]:
        for seed in SEEDS:
            assert ipaddress.IPv6Address(other_characters(original, random.Random(seed), letters=True))
    for original in ["de:ad:be:ef:ca:fe", "00-1B-44-11-3A-B7", "110bcd25-a55d-453a-8046-1297901ea002"]:
        for seed in SEEDS:
            made = other_characters(original, random.Random(seed), letters=True)
            assert re.fullmatch("[0-9a-fA-F]+", re.sub("[:-]", "", made))
            assert len(made) == len(original)


def test_dates_and_times_stay_possible():
    for original, form in [
        ("1984", r"19[89]\d"),
        ("1990s", r"19[1-9]0s"),
        ("80s", r"[1-9]0s"),
        ("10:30", r"([1-9]|1[0-2]):[0-5][05]"),
        ("17:05", r"([1-9]|1\d|2[0-3]):[0-5][05]"),
        ("5pm", r"([1-9]|1[0-2])[ap]m"),
        ("2018-05-02", r"20[01]\d-(0\d|1[0-2])-(0\d|1[0-2])"),
        ("05.02.2018", r"(0\d|1[0-2])\.(0\d|1[0-2])\.20[01]\d"),
        ("5/20", r"([1-9]|1[0-2])/([1-9]|1\d|2[0-8])"),
        ("31", r"[1-9]|1\d|2[0-8]"),
        ("3rd", r"(1|21)st|(2|22)nd|(3|23)rd|([4-9]|1\d|20|2[4-8])th"),
        ("18:05:33", r"([1-9]|1\d|2[0-3]):[0-5]\d:[0-5]\d"),
        ("0:35", r"([1-9]|1[0-2]):[0-5][05]"),
        ("10/2018", r"([1-9]|1[0-2])/20[01]\d"),
        ("2018-05", r"20[01]\d-(0[1-9]|1[0-2])"),
        ("25.12.99", r"([1-9]|1\d|2[0-8])\.([1-9]|1[0-2])\.[89]\d"),
        ("2001-9-11", r"20[01]\d-([1-9]|1[0-2])-([1-9]|1[0-2])"),
        ("31.12", r"([1-9]|1\d|2[0-8])\.([1-9]|1[0-2])"),
        ("2018-05-02T10:30:00Z", r"20\d\d-(0[1-9]|1[0-2])-(0[1-9]|1[0-2])T([1-9]|1[0-2])(:[0-5]\d){2}Z"),
        ("mid-1990s", r"(early|mid|late)-19[1-9]0s"),
    ]:
        made = [other_date(original, random.Random(seed), seed % YEARS) for seed in range(200)]
        assert [date for date in made if not re.fullmatch(form, date)] == []
        assert len(set(made)) > 5


PARTS_OF_DATES = st.sampled_from(["10:30", "12.05.1987", "2018", "5/20", "555", "7", "00", "1st", "5pm", "1990s", "½",
                                  "²", "-", "/", ".", ":", "T", "h", " ", ",", "a", "0", "19"])  # fmt: skip


@pytest.mark.timeout(120)
@given(st.lists(PARTS_OF_DATES, min_size=1, max_size=6).map("".join), st.sampled_from(["DATE", "NUMBER", "MONEY"]))
@example("10:30-11:45", "DATE")
@example("12.05.1987-13.06.1990", "DATE")
@example("18:05:33", "DATE")
@example("01.02.2003/04.05.2006", "DATE")
@example("12.30-555-1234", "DATE")
@example("10:30:15.250", "DATE")
@example("5½", "NUMBER")
def test_no_figures_stay_as_they_were(original, label):
    """Neither a run of figures nor a numeric sign is the same whatever is drawn."""
    made = [figure(label, random.Random(seed), original) for seed in range(60)]
    assert [text for text in made if set("½²") & set(text)] == []
    if any(map(str.isdecimal, original)):
        for runs in zip(*(re.findall(r"\d+", text) for text in made), strict=True):
            assert len(set(runs)) > 1
