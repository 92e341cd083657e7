import pytest

from tasks.corpora.words import fold, words_of
from tasks.errors import CorpusError
from tasks.masking.lists.allow_list import SHIPPED_LIST, allow_list, read_word_list
from tasks.masking.settings import AllowList

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


@pytest.mark.parametrize(
    "names",
    [FIRST_NAMES, SURNAMES, PLACES, COMPANIES, NUMBERS_AND_DATES],
    ids="first last places companies numbers".split(),
)
def test_shipped_list_holds_no_names(names):
    kept = read_word_list(SHIPPED_LIST)
    assert {fold(name) for name in names} & kept <= EVERYDAY


def test_shipped_list_holds_common_words():
    kept = read_word_list(SHIPPED_LIST)
    assert 4800 <= len(kept) <= 5200
    text = """I don't know what you'd like to do, but we can't stay here; they're going to close the door soon. It was
    a good day and she will talk about her work, may ask him for help, because
    there's nothing wrong with us. yeah ok haha"""
    assert not [word for word in words_of(text) if fold(word) not in kept]


def test_shipped_list_is_sorted_folded_and_of_single_words():
    lines = SHIPPED_LIST.read_text(encoding="utf-8").splitlines()
    assert lines == sorted(set(lines))
    assert all(fold(line) == line and words_of(line) == [line] for line in lines)
    assert not [line for line in lines if any(character.isdigit() for character in line)]


def test_a_list_of_ones_own(tmp_path):
    path = tmp_path / "list.txt"
    path.write_bytes("\ufeffThe\r\n\r\n  cat \nCAT\nit’s\n\n".encode())
    assert read_word_list(path) == {"the", "cat", "it's"}
    assert allow_list(AllowList(kind="allow_list", path=str(path))).kept_words == {"the", "cat", "it's"}


@pytest.mark.parametrize("content", ["", "\n \n", "\ufeff"])
def test_an_empty_list(tmp_path, content):
    (tmp_path / "list.txt").write_text(content, encoding="utf-8")
    with pytest.raises(CorpusError, match=r"list\.txt' is empty; it needs one word a line"):
        read_word_list(tmp_path / "list.txt")


def test_a_list_that_is_not_there():
    with pytest.raises(CorpusError, match=r"'nowhere\.txt' does not exist"):
        read_word_list("nowhere.txt")
