"""Which language each word has: learned without labels and with them, measured, and by the command."""

import json
from itertools import pairwise

import numpy as np
import pytest

from tasks.cli import main
from tasks.languages.labelled_model import LabelledModel
from tasks.languages.labelled_words import LabelledWords, read_labelled_words
from tasks.languages.mixed_words import MixedWords
from tasks.languages.mixing import Mixing, burstiness, code_mixing_index, islands, multilingual_index, switch_points
from tasks.languages.path import STAY, Chain, follow
from tasks.languages.romanised_hindi import romanised
from tasks.languages.scores import SWITCHES, language_scores
from tasks.languages.word_languages import NAME, WordLanguages

MIXED_LINES = [
    "we went to the house y mi hermana no quería comer nada",
    "pero I told you that already porque no me escuchas",
    "the children were playing and después nos fuimos a casa",
    "no sé what to do with all these things",
    "they said it was fine but yo creo que es muy tarde",
    "ayer compramos un coche nuevo and it was expensive",
]
TONGUES = [
    "e e e e e s s s s s s s",
    "s e e e e e s s s s",
    "e e e e e s s s s s",
    "s s e e e e e e e",
    "e e e e e e s s s s s s",
    "s s s s s e e e e",
]
NAMES = {"e": "en", "s": "es"}
GOLD = [
    LabelledWords(line.split(), [NAMES[x] for x in tongue.split()])
    for line, tongue in zip(MIXED_LINES, TONGUES, strict=True)
]


@pytest.fixture(scope="module")
def model():
    return WordLanguages(["en", "es"], [line.split() for line in MIXED_LINES])


def test_languages_of_words_without_labels(model):
    found = [line.languages for line in model.tag(line.words for line in GOLD)]
    scores = language_scores(GOLD, found, ["en", "es"])
    assert scores["en"].value > 0.95
    assert scores["es"].value > 0.95
    assert scores[SWITCHES].value > 0.7


def test_what_is_no_word_has_no_language(model):
    (line, empty) = model.tag([["Hola", ",", "[MASK],", "15", "¿qué?", "(house)"], []])
    assert line.languages[1:4] == [None, None, None]
    assert (line.languages[4], line.languages[5]) == ("es", "en")
    assert (empty.words, empty.languages, empty.before) == ([], [], [])


def test_left_context_alone_knows_nothing_of_what_follows(model):
    one, other = model.tag([["no", "house", "window"], ["no", "quiero", "comer"]])
    for mine, others in zip(one.before[:2], other.before[:2], strict=True):
        assert mine == pytest.approx(others, abs=1e-12)
    assert one.before[2] != pytest.approx(other.before[2], abs=1e-3)
    assert all(abs(sum(each.values()) - 1) < 1e-9 for each in one.before)


def test_tags_do_not_depend_on_blocks(model):
    lines = [line.words for line in GOLD]
    whole, parts = (list(model.tag(lines, block)) for block in (5000, 1))
    assert [each.languages for each in whole] == [each.languages for each in parts]
    for one, two in zip(whole, parts, strict=True):
        assert np.allclose([list(x.values()) for x in one.before], [list(x.values()) for x in two.before])


def test_a_language_without_a_list_is_learned_from_the_text():
    """Half the lines are words of no list; their letters differ, and nobody said what they are."""
    unknown = ["zuqko wexqi zuqko", "qixzu wexqi kozqe", "zuqko qixzu wexqi kozqe"]
    lines = [line.split() for line in unknown * 30 + ["the house is big", "we saw the children again"] * 30]
    found = WordLanguages(["en", "xq"], lines)
    tagged = list(found.tag([["the", "children", "zuqko", "wexqi"], ["qixzu", "kozqe"]]))
    assert [each.languages for each in tagged] == [["en", "en", "xq", "xq"], ["xq", "xq"]]
    assert found.unlisted == ["xq"]


def test_mixed_words_are_stems_with_the_endings_of_the_other_language():
    weights = MixedWords(["de", "tr"])
    mixed, plain = ["semesterdeyim", "studiumlar"], ["semester", "üniversitede", "arbeiten"]
    assert min(map(weights.weight, mixed)) > 0 == max(map(weights.weight, plain))
    lines = [line.split() for line in ["ich bin im semesterdeyim şimdi", "das ist so güzel", "ben burada wohne ich"]]
    (line,) = WordLanguages(["de", "tr"], lines).tag(lines[:1])
    assert line.languages[3:] == ["mixed", "tr"]


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


@pytest.mark.parametrize(
    ("tongues", "index", "switches", "lengths"),
    [
        ("eeeeesss", 37.5, [5], [5, 3]),
        ("eeesssdd", 62.5, [3, 6], [3, 3, 2]),
        ("eeee", 0.0, [], [4]),
        ("....se", 50.0, [5], [1, 1]),
        ("s.s", 0.0, [], [2]),
        ("eNNNNes", 100 / 3, [6], [2, 1]),
        ("...", 0.0, [], []),
        ("", 0.0, [], []),
    ],
)
def test_mixing_by_hand(tongues, index, switches, lengths):
    """The two examples of Das and Gambäck first. What has no language is never the majority, and no switch."""
    languages = [{".": None, "N": NAME}.get(x, x) for x in tongues]
    assert code_mixing_index(languages) == pytest.approx(index)
    assert (switch_points(languages), islands(languages)) == (switches, lengths)


def test_measures_of_a_corpus_by_hand():
    assert multilingual_index([5, 5]) == pytest.approx(1)
    assert multilingual_index([5, 0]) == 0
    assert multilingual_index([3, 1]) == pytest.approx((1 - 10 / 16) / (10 / 16))
    assert multilingual_index([0, 0]) is None
    assert burstiness([3]) is None
    assert burstiness([2, 2, 2]) == -1
    assert burstiness([1, 3]) == pytest.approx(-1 / 3)
    corpus = Mixing(("e", "s"))
    for line in (["e", "s", "mixed", None], ["e", "e", "e"], []):
        corpus.add(line)
    assert (corpus.switches, corpus.pairs, corpus.mixed_lines, corpus.lines) == (1, 3, 1, 3)
    found = corpus.fields()
    assert found["code_mixing_index"] == pytest.approx(50 / 3)
    # Of five words with a language four are e: (1 - 17/25) / (17/25); one of three pairs is a switch.
    assert found["multilingual_index"] == pytest.approx(8 / 17)
    assert found["integration_index"] == pytest.approx(1 / 3)
    assert (found["islands"], found["mean_island"], found["island_lengths"]) == (3, 5 / 3, {"1": 2, "3": 1})
    assert found["burstiness"] == pytest.approx((8**0.5 / 3 - 5 / 3) / (8**0.5 / 3 + 5 / 3))


@pytest.mark.parametrize(
    ("gold", "found", "expected"),
    [
        ([["e", "e", "s", None], ["s", "mixed"]], [["e", "s", "s", "s"], ["s", "s"]],
            {"e": 2 / 3, "s": 4 / 6, "mixed": 0, SWITCHES: 0}),
        # Of three words found as names two are; both names of people's are found. A word of a language that is found as
        # a name is missed, and no switch.
        ([["e", NAME, "e", "s", NAME]], [["e", NAME, NAME, "s", NAME]],
            {"precision": 2 / 3, "recall": 1, "e": 2 / 3, SWITCHES: 1}),
    ],
)  # fmt: skip
def test_scores_by_hand(gold, found, expected):
    scores = language_scores([LabelledWords(["x"] * len(line), line) for line in gold], found, ["e", "s"])
    assert {name: scores[name].value for name in expected} == pytest.approx(expected)
    assert ("recall" in scores) == ("recall" in expected)


NAMED = [
    "gestern war Gökhan mit seiner Mutter in der Küche",
    "dün Zorblat ile okula gittik ve Ayşegül geldi",
    "das Zorblat ist schön und die Wohnung auch",
    "Zorblat mi geldi şimdi",
    "okulda çok güzel bir gün geçirdik",
    "ich habe ein Problem mit dem Auto und dem Haus",
    "bugün Quimper'de yağmur var",
]


def test_names_by_capitals_and_lists():
    """German nouns have capitals too, so that there a list of names or another place has to say it."""
    lines = [line.split() for line in NAMED]
    found = WordLanguages(["de", "tr"], lines * 10, names=True)
    told = [
        [word for word, x in zip(line.words, line.languages, strict=True) if x == NAME] for line in found.tag(lines)
    ]
    assert told == [["Gökhan"], ["Zorblat", "Ayşegül"], ["Zorblat"], ["Zorblat"], [], [], ["Quimper'de"]]


def test_names_without_capitals_are_rare_words_of_lists():
    """Where nothing has a capital, and where all letters are, capitals say nothing."""
    lines = [line.lower().split() for line in MIXED_LINES * 10] + [["we", "saw", "schwarzenegger", "and", "hope"]]
    found = WordLanguages(["en", "es"], lines, names=True)
    (small,) = found.tag(lines[-1:])
    assert small.languages[3:] == ["en", "en"]
    shouted = [[word.upper() for word in line] for line in lines]
    assert not any(NAME in line.languages for line in WordLanguages(["en", "es"], shouted, names=True).tag(shouted))


def test_words_are_looked_up_as_lists_have_them():
    """A Turkish capital is on the list. No list has a word with an apostrophe as one: it is known by its parts."""
    (line,) = WordLanguages(["en", "tr"], [["we", "were", "there"]]).tag([["İngilizce"]])
    assert line.languages == ["tr"]
    assert min(WordLanguages(["fr", "en"], [["on"]]).shares(["c'est", "qu’on"])[:, 0]) > 0.99


@pytest.mark.parametrize(
    ("word", "label"),
    [("me no me", "en en en"), ("we saw zork", f"en en {NAME}")],  # words of both languages, and a name
)
def test_labels_help(model, word, label):
    gold = [LabelledWords(word.split(), label.split())] * 20 + GOLD
    (line,) = LabelledModel(model, gold).tag([word.replace("we", "they").split()])
    assert line.languages == label.split()


def test_the_command_tags_measures_and_scores(tmp_path, capsys):
    text, tags, gold, report = (tmp_path / name for name in ("text.txt", "tags.jsonl", "gold.jsonl", "report.json"))
    text.write_text("\n".join([*MIXED_LINES, ""]) + "\n", encoding="utf-8")
    letters = [tongue.replace(" ", "") for tongue in TONGUES]
    gold.write_text(
        "".join(json.dumps({"text": a, "languages": b}) + "\n" for a, b in zip(MIXED_LINES, letters, strict=True))
    )
    command = ["languages", "--pair", "en,es", "--input", str(text), "--output", str(tags), "--gold", str(gold)]
    assert main([*command, "--report", str(report)]) == 0
    assert len(tags.read_text(encoding="utf-8").splitlines()) == len(MIXED_LINES) + 1
    assert tags.stat().st_mode & 0o077 == 0
    measured = json.loads(report.read_text())["measured"]
    assert measured["f1"]["en"] > 0.95
    assert measured["words"] == sum(len(line.split()) for line in MIXED_LINES)
    shown = capsys.readouterr()
    assert "hermana" not in shown.out + shown.err + report.read_text()
    assert [each.languages for each in read_labelled_words(tags, ["en", "es"])][:1] == [
        json.loads(tags.read_text(encoding="utf-8").splitlines()[0])["languages"]
    ]


@pytest.mark.parametrize(
    ("pair", "content", "error"),
    [
        ("en", "a", "two different codes"),
        ("en,en", "a", "two different codes"),
        ("de,", "a", "two different codes"),
        ("zz,xx", "a", "no list of words for any of them"),
        ("en,es", "", "holds no word"),
    ],
)
def test_refusals(tmp_path, capsys, pair, content, error):
    text = tmp_path / "text.txt"
    text.write_text(content + "\n")
    assert main(["languages", "--pair", pair, "--input", str(text)]) == 1
    assert error in capsys.readouterr().err


BANGOR = """word_id\tutterance_id\tlocation\tsurface\tauto\tspeaker\tlangid
1\t1\t1\tand\tand.CONJ\tANA\teng
2\t1\t2\tcasa\thouse.N\tANA\tspa
3\t1\t3\t.\t\tANA\t999
4\t2\t1\tno\tno\tLEO\teng&spa
5\t2\t2\tflipeando\tflip\tLEO\teng+spa
(5 rows)
"""
DENGLISCH = """source,user_name,sen_id,sen_num,token,categ
r,u,p1,1,Das,D
r,u,p1,1,Meeting,E
r,u,p1,2,gemanaged,M
r,u,p1,2,",",O
"""
SENTIMIX = """meta\t1\tpositive
the\tlang1
casa\tlang2
Ana\tne
:)\tother

meta\t2\tneutral
hola\tlang2
"""


@pytest.mark.parametrize(
    ("content", "pair", "lines"),
    [
        (BANGOR, ["en", "es"], [["en", "es", None], [None, "mixed"]]),
        (DENGLISCH, ["de", "en"], [["de", "en"], ["mixed", None]]),
        (SENTIMIX, ["en", "es"], [["en", "es", NAME, None], ["es"]]),
        ("yeh\tHin\nbook\tEng\n", ["hi", "en"], [["hi", "en"]]),
        ('{"text": "we saw Ana", "languages": "eeb", "names": [2]}', ["en", "es"], [["en", "en", NAME]]),
    ],
)
def test_labelled_words_as_they_are_published(tmp_path, content, pair, lines):
    (tmp_path / "published").write_text(content, encoding="utf-8")
    found = read_labelled_words(tmp_path / "published", pair)
    assert [line.languages for line in found] == lines
    assert found[0].words[0] in ("and", "Das", "the", "yeh", "we")


def test_bad_labelled_lines_are_named(tmp_path, capsys):
    text, gold = tmp_path / "text.txt", tmp_path / "gold.jsonl"
    text.write_text("the house\n")
    for line, error in [
        ('{"text": "so ein Tag", "languages": "ee"}', "line 1: needs a language for each word"),
        ("no json", "in no known form"),
        ('{"text": "a b", "languages": "ee"}\nno json', "line 2"),
        ("the\teng\nhouse", "row 2: has 1 columns"),
        ("utterance_id\tsurface\tlangid\n1\tthe\t0\n", "its labels are 0"),
        ('{"words": ["a"], "languages": [null]}', "no word has one of the languages en, es"),
    ]:
        gold.write_text(line + "\n")
        assert main(["languages", "--pair", "en,es", "--input", str(text), "--gold", str(gold)]) == 1
        assert error in capsys.readouterr().err


def test_hindi_in_latin_letters_has_the_spellings_that_people_type():
    spelled = romanised({"में": 0.5, "दोस्त": 0.2, "मित्र": 0.1, "सकता": 0.1, "ज़रूर": 0.1, "abc": 0.1})
    assert {"mein", "me", "dost", "mitra", "sakta", "saktaa", "zarur", "zaroor", "jarur"} <= set(spelled)
    assert "abc" not in spelled
    assert sum(spelled.values()) == pytest.approx(1.0)
    lines = [line.split() for line in ("mujhe kal subah utha do", "please play the next song", "mere friends ko bolo")]
    tagged = list(WordLanguages(["en", "hi-Latn"], lines).tag(lines))
    assert set(tagged[0].languages) == {"hi-Latn"}
    assert set(tagged[1].languages) == {"en"}
    assert tagged[2].languages[1] == "en"


ARABIZI = [
    "ana knt f ddar w huwa ja m3a sahbu je ne sais pas pourquoi",
    "wach nta mzyan had nhar je suis très content de te voir",
    "ma bghitch nakol walo c'est trop cher pour moi",
    "ghadi nmchi l ssuq on va acheter du pain et du lait",
]
GREEKLISH = ["den kserw ti na kanw but we can go home now", "ela edw re file the house is very big"]
TRANSLIT = ["ya ne znayu chto delat but we can go home now", "poydem domoy seychas the house is very big"]


@pytest.mark.parametrize(
    ("pair", "lines", "unused"),
    [
        ("fr,ar", ARABIZI, "ar"),
        ("en,el", GREEKLISH, "el"),
        ("en,ru", TRANSLIT, "ru"),
        ("en,hi", ["mujhe nahi pata but we can go home now"], "hi"),
        ("fr,ar", [*ARABIZI, "أنا كنت في البيت مع صاحبي اليوم"], None),
        ("fr,ar", ["أنا كنت في البيت مع صاحبي اليوم"], None),
        ("en,es", MIXED_LINES, None),
        ("en,hi-Latn", ["mujhe nahi pata but we can go home now"], None),
    ],
)
def test_a_list_in_another_script_than_the_text_is_not_used_and_warned_about(pair, lines, unused, tmp_path):
    (tmp_path / "text.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    command = ["languages", "--pair", pair, "--input", str(tmp_path / "text.txt"), "--report", str(tmp_path / "r.json")]
    assert main(command) == 0
    warnings = json.loads((tmp_path / "r.json").read_text())["warnings"]
    said = f"the list of frequent words of {unused} is in another script than the text, and is not used"
    assert [said in warning for warning in warnings] == [True] * (unused is not None)
