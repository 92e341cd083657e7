"""Which language each word has: learned without labels and with them, and from the lists of languages."""

import sys
from itertools import pairwise

import numpy as np
import pytest
from command_results import refusal

from tasks.languages import segmentation
from tasks.languages.labelled_model import LabelledModel
from tasks.languages.labelled_words import LabelledWords
from tasks.languages.path import STAY, Chain, follow
from tasks.languages.scores import SWITCHES, language_scores
from tasks.languages.segmentation import divider
from tasks.languages.word_languages import NAME, WordLanguages

MIXED = {
    "we went to the house y mi hermana no quería comer nada": "e e e e e s s s s s s s",
    "pero I told you that already porque no me escuchas": "s e e e e e s s s s",
    "the children were playing and después nos fuimos a casa": "e e e e e s s s s s",
    "no sé what to do with all these things": "s s e e e e e e e",
    "they said it was fine but yo creo que es muy tarde": "e e e e e e s s s s s s",
    "ayer compramos un coche nuevo and it was expensive": "s s s s s e e e e",
}
GOLD = [
    LabelledWords(line.split(), [{"e": "en", "s": "es"}[x] for x in tongues.split()]) for line, tongues in MIXED.items()
]


@pytest.fixture(scope="module")
def model():
    return WordLanguages(["en", "es"], [line.split() for line in MIXED])


def test_languages_of_words_without_labels(model):
    found = [line.languages for line in model.tag(line.words for line in GOLD)]
    scores = language_scores(GOLD, found, ["en", "es"])
    assert scores["en"].value > 0.95
    assert scores["es"].value > 0.95
    assert scores[SWITCHES].value > 0.7


def test_what_is_no_word_has_no_language(model):
    (line, empty) = model.tag([["Hola", ",", "[MASK],", "15", "¿qué?", "(house)"], []])
    assert line.languages[1:] == [None, None, None, "es", "en"]
    assert (empty.words, empty.languages, empty.before) == ([], [], [])


def test_left_context_alone_knows_nothing_of_what_follows(model):
    one, other = model.tag([["no", "house", "window"], ["no", "quiero", "comer"]])
    for mine, others in zip(one.before[:2], other.before[:2], strict=True):
        assert mine == pytest.approx(others, abs=1e-12)
    assert one.before[2] != pytest.approx(other.before[2], abs=1e-3)
    assert all(abs(sum(each.values()) - 1) < 1e-9 for each in one.before)


@pytest.mark.parametrize(
    ("codes", "learned", "tagged"),
    [
        # Half the lines are words of no list; their letters differ, and nobody said what they are.
        (
            "en xq",
            ["zuqko wexqi zuqko", "qixzu wexqi kozqe", "zuqko qixzu wexqi kozqe", "the house is big",
             "we saw the children again"] * 20,
            {"the children zuqko wexqi": "en en xq xq", "qixzu kozqe": "xq xq"},
        ),
        (
            "de tr",
            ["ich bin im semesterdeyim şimdi", "das ist so güzel", "ben burada wohne ich"],
            {"ich bin im semesterdeyim şimdi": "de de de mixed tr"},
        ),
        ("en tr", ["we were there"], {"İngilizce": "tr"}),
        (
            "en hi-Latn",
            ["mujhe kal subah utha do", "please play the next song", "mere friends ko bolo"],
            {"mujhe kal subah utha do": " ".join(["hi-Latn"] * 5), "please play the next song": "en en en en en"},
        ),
        (
            "zh en",
            ["我们明天去 shopping，OK了", "the weather is nice 今天很好"],
            {"我们明天去 shopping，OK了": "zh zh zh en - en zh",
             "the weather is nice 今天很好": "en en en en zh zh zh"},
        ),
    ],
    ids=["no list", "mixed words", "a Turkish capital", "Hindi in Latin letters", "Chinese"],
)  # fmt: skip
def test_languages_are_learned_from_a_text_and_lists(codes, learned, tagged):
    if "zh" in codes:
        pytest.importorskip("jieba")
    divide = divider(codes.split())
    found = WordLanguages(codes.split(), map(divide, learned), names=True).tag(map(divide, tagged))
    assert [" ".join(language or "-" for language in line.languages) for line in found] == list(tagged.values())


def test_the_path_is_the_sum_over_all_paths():
    """Probabilities of two languages over three words, by enumeration of the eight paths."""
    evidence = np.log(np.array([[0.3, 0.1], [0.2, 0.4], [0.05, 0.5]]))
    chain = Chain(np.array([0.6, 0.4]), np.array([0.1, 0.2, 0.3, 0.4]))
    found = follow(chain, evidence, np.array([3]))
    total, by_language, ahead = 0.0, np.zeros((3, 2)), np.zeros((3, 2))
    for share, stay in zip(chain.stickiness, STAY, strict=True):
        for path in np.ndindex(2, 2, 2):
            steps = [stay if a == b else 1 - stay for a, b in pairwise(path)]
            prior = share * chain.first[path[0]] * np.cumprod([1, *steps])
            parts = np.cumprod([1, *np.exp([evidence[i, k] for i, k in enumerate(path)])])
            total += prior[2] * parts[3]
            for place, language in enumerate(path):
                by_language[place, language] += prior[2] * parts[3]
                # What follows a place sums to one; each of its paths has an equal part of the place's share.
                ahead[place, language] += prior[place] * parts[place] / 2 ** (2 - place)
    assert np.isclose(found.log_likelihood, np.log(total))
    assert np.allclose(found.languages, by_language / total)
    assert np.allclose(found.before, ahead / ahead.sum(axis=1, keepdims=True))


def test_names_by_capitals_and_lists():
    """German nouns have capitals too, so that there a list of names or another place has to say it."""
    names = {
        "gestern war Gökhan mit seiner Mutter in der Küche": ["Gökhan"],
        "dün Zorblat ile okula gittik ve Ayşegül geldi": ["Zorblat", "Ayşegül"],
        "das Zorblat ist schön und die Wohnung auch": ["Zorblat"],
        "Zorblat mi geldi şimdi": ["Zorblat"],
        "okulda çok güzel bir gün geçirdik": [],
        "ich habe ein Problem mit dem Auto und dem Haus": [],
        "bugün Quimper'de yağmur var": ["Quimper'de"],
    }
    lines = [line.split() for line in names]
    tagged = WordLanguages(["de", "tr"], lines * 10, names=True).tag(lines)
    found = [[word for word, x in zip(line.words, line.languages, strict=True) if x == NAME] for line in tagged]
    assert found == list(names.values())
    # Where all letters are capitals, they say nothing.
    shouted = [[word.upper() for word in line] for line in lines * 10]
    assert not any(NAME in line.languages for line in WordLanguages(["de", "tr"], shouted, names=True).tag(shouted))


@pytest.mark.parametrize(
    ("word", "label"),
    [("me no me", "en en en"), ("we saw zork", f"en en {NAME}")],  # words of both languages, and a name
)
def test_labels_help(model, word, label):
    gold = [LabelledWords(word.split(), label.split())] * 20 + GOLD
    (line,) = LabelledModel(model, gold).tag([word.replace("we", "they").split()])
    assert line.languages == label.split()


ARABIZI = "ana knt f ddar w huwa ja m3a sahbu je ne sais pas pourquoi"
ARABIC = "أنا كنت في البيت مع صاحبي اليوم"


def test_a_list_in_another_script_than_the_text_is_not_used():
    for lines, unused in (([ARABIZI, "wach nta mzyan had nhar je suis très content de te voir"], ["ar"]),
                          ([ARABIZI, ARABIC], [])):  # fmt: skip
        assert WordLanguages(["fr", "ar"], [line.split() for line in lines]).in_other_script == unused


@pytest.mark.parametrize(
    ("languages", "package", "text", "words"),
    [
        ("en zh", "jieba", "OK了，我们[MASK][PERSON]去 don’t go。", "OK 了 ， 我们 [MASK] [PERSON] 去 don’t go 。"),
        ("en ja", "ipadic", "昨日OKでした、コーヒーを飲んだ", "昨日 OK でし た 、 コーヒー を 飲ん だ"),
    ],
)
def test_lines_of_scripts_without_spaces_are_divided_and_nothing_is_lost(languages, package, text, words):
    pytest.importorskip(package)
    divided = divider(languages.split())(text)
    assert divided == words.split()
    assert "".join(divided) == "".join(text.split())


def test_without_the_package_one_line_says_what_to_install(tmp_path, monkeypatch):
    segmentation._dictionary.cache_clear()
    monkeypatch.setitem(sys.modules, "jieba", None)
    (tmp_path / "text.txt").write_text("我们 go\n", encoding="utf-8")
    said = refusal("languages", "--pair", "zh,en", "--input", tmp_path / "text.txt")
    assert "pip install 'palimpsest[segmentation]'" in said
    segmentation._dictionary.cache_clear()
