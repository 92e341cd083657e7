import pytest

from tasks.corpora.word_list import read_word_list
from tasks.corpora.words import fold, words_of
from tasks.masking.lists.allow_list import SHIPPED_LIST, AllowList
from tasks.masking.lists.allowed_words import AllowedWords
from tasks.masking.technique import MaskingTally

FIRST_NAMES = """James Mary Robert Patricia John Jennifer Michael Linda David Elizabeth William Barbara
Richard Susan Joseph Jessica Thomas Sarah Charles Karen Christopher Lisa Daniel Nancy Matthew Betty
Anthony Sandra Mark Margaret Donald Ashley Steven Emily Andrew Kimberly Paul Donna Joshua Michelle
Kenneth Carol Kevin Amanda Brian Melissa Jack Rose Frank Grace Bill Ray Art Gene Dean Faith Joy Dawn
Ruby Lily Amber Crystal Eve Iris Pat Drew Rob Nick Bob Tom Sue Robin Jay Lance Max Guy April June
Summer Autumn Penny Ginger Violet Daisy Olive Pearl Victor Earl Chuck Wade Cliff Rocky Misty Sandy
Candy Kitty Mohammed Wei Priya Aisha Juan José Yuki Olga Fatima""".split()
SURNAMES = """Smith Johnson Williams Brown Jones Garcia Miller Davis Rodriguez Martinez Hernandez
Lopez Gonzalez Wilson Anderson Taylor Moore Jackson Martin Lee Perez Thompson White Harris Sanchez
Clark Ramirez Lewis Robinson Walker Young Allen King Wright Scott Torres Nguyen Hill Flores Green
Adams Nelson Baker Hall Rivera Campbell Mitchell Carter Roberts Cook Bell Murphy Bailey Cooper
Richardson Cox Howard Ward Brooks Gray James Bennett Wood Ross Foster Butler Barnes Fisher Price
Stone Fox Hunter Knight Bishop Mason Porter Fields Banks Parks Woods Rice Page Lane Cross Snow Frost
Marsh Burns""".split()
PLACES = """London Paris Chicago Houston Boston Seattle Denver Dallas Austin Berlin Madrid Rome
Tokyo Beijing Delhi Mumbai Cairo Lagos Sydney Toronto Moscow Phoenix Orlando Buffalo Mobile Reading
Bath Nice Split Lincoln Jackson Madison Cleveland America England France Germany China India Turkey
Jordan Chad Mali Cuba Georgia Jersey Texas Utah Ohio California Europe Asia Africa Pacific Atlantic""".split()
COMPANIES = """Google Amazon Apple Microsoft Facebook Twitter Netflix Tesla Oracle Intel Nvidia
Samsung Sony Toyota Honda Ford Shell Visa Chase Citi Walmart Target Costco Nike Adidas Puma Pepsi
Coke Starbucks Subway Boeing Airbus Siemens Bosch Disney Pixar Orange Dell Uber Lyft Airbnb Zoom
Slack Pfizer Bayer Nestle Delta Verizon Comcast""".split()
NUMBERS_AND_DATES = """five twelve hundred million 1 1990 5pm Monday Sunday January March August Christmas""".split()
# A city, but an everyday word first.
EVERYDAY = {"nice"}


def test_the_shipped_list_holds_common_words_and_no_names():
    kept = read_word_list(SHIPPED_LIST).words
    names = {*FIRST_NAMES, *SURNAMES, *PLACES, *COMPANIES, *NUMBERS_AND_DATES}
    assert set(map(fold, names)) & kept <= EVERYDAY
    assert 4800 <= len(kept) <= 5200
    text = """I don't know what you'd like to do, but we can't stay here; they're going to close the door soon. It was
    a good day and she will talk about her work, may ask him for help, because
    there's nothing wrong with us. yeah ok haha"""
    assert not [word for word in words_of(text) if fold(word) not in kept]
    lines = SHIPPED_LIST.read_text(encoding="utf-8").splitlines()
    assert lines == sorted(set(lines))
    assert all(fold(line) == line and words_of(line) == [line] for line in lines)
    assert not [line for line in lines if any(character.isdigit() for character in line)]


def test_a_list_of_ones_own_and_its_lines_that_are_not_one_word(tmp_path):
    path = tmp_path / "list.txt"
    path.write_bytes("\ufeffThe\r\n\r\n  cat \nCAT\nit’s\nNew York\nwell-known\nTom's\n...\n".encode())
    technique = AllowList(kind="allow_list", path=str(path)).build(None, 1)
    assert technique.allowed_words == {"the", "cat", "it's"}
    (announcement,) = technique.announcements()
    assert announcement.endswith("4 lines are not one word each and keep nothing (line 6, 7, 8, 9)")


LIST = "the a we is it's don't walk cat like dog café may based"


@pytest.mark.parametrize(
    ("line", "masked"),
    [
        # Each form must itself be on the list.
        ("walk walks walked walking cats", "walk [MASK] [MASK] [MASK] [MASK]"),
        # Contractions are words; possessive endings neither save nor lose a word.
        ("it's it’s IT'S don't won't The", "it's it’s IT'S don't [MASK] The"),
        ("the cat's, Tom's and Tom’s", "the cat's, [MASK]'s [MASK] [MASK]’s"),
        # Each part of a hyphened word is looked up by itself.
        ("Chicago-based cat-like cat/dog", "[MASK]-based cat-like cat/dog"),
        # A word with a digit is masked, its signs stay.
        ("5 $5 1,000.50 5pm cat5 10%", "[MASK] $[MASK] [MASK] [MASK] [MASK] [MASK]%"),
        # Addresses are masked whole, also where each of their words is kept.
        ("cat@dog.com the@cat.dog", "[MASK] [MASK]"),
        ("http://the.cat/dog www.cat.com cat.com", "[MASK] [MASK] [MASK]"),
        ("@cat #dog", "[MASK] [MASK]"),
        # NFKC and format characters make no difference, accents do.
        ("ｃａｔ ca\u00adt cafe\u0301 café cafe", "ｃａｔ ca\u00adt cafe\u0301 café [MASK]"),
        ("кот 猫 γάτα", "[MASK] [MASK] [MASK]"),
        # Emoji, symbols and punctuation are no words.
        ("😀 the cat 👩‍👩‍👧 — … € !", "😀 the cat 👩‍👩‍👧 — … € !"),
        # Control characters divide words, direction marks do not hide them.
        ("the\x00cat the\x07Tom \u202ecat\u202c", "the\x00cat the\x07[MASK] \u202ecat\u202c"),
        ("[MASK] is a [PERSON]", "[[MASK]] is a [[MASK]]"),
    ],
)
def test_what_a_list_masks_and_keeps(line, masked):
    technique = AllowedWords(LIST.split(), "allow_list")
    ((text, spans),) = technique.mask([line], "mask", MaskingTally(), with_spans=True)
    assert text == masked
    assert len(spans) == masked.count("[MASK]")
