"""Lists by language: a word is kept by the list of the language that it has where it stands."""

import json
from functools import cache

import pytest
from restoring import restored

from tasks.cli import main
from tasks.corpora.word_list import read_word_list
from tasks.languages import word_languages
from tasks.masking.lists.language_lists import LanguageLists
from tasks.masking.technique import MaskingTally

LINES = [
    "we went to the house with my sister yesterday",
    "mi hermana no quería comer nada esta mañana",
    "pero I told you that already porque no me escuchas",
    "the children were playing and después nos fuimos a casa",
    "the men die in the end and nobody knows why",
    "there is no way that we can do this",
    "the carburettor estaba sucio",
    "we saw that carburettor with filomena ayer por la noche",
    "maría y carlos viven en madrid con su familia",
    "yesterday we went to Sandwich with Hope",
]


@pytest.fixture(autouse=True, scope="module")
def learned_once():
    """What is learned of a text's languages is made once for all tests."""
    learned = cache(word_languages.WordLanguages)

    def once(languages, lines, names=False):
        return learned(tuple(languages), tuple(map(tuple, lines)), names=names)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(word_languages, "WordLanguages", once)
        yield


def masked(lists, lines=LINES, **settings):
    technique = LanguageLists(kind="language_lists", lists=lists, **settings).build(None, 1)
    tally = MaskingTally()
    return [text for text, _ in technique.mask(lines, "mask", tally, with_spans=False)], technique, tally


def test_everyday_words_of_both_languages_are_unmasked_and_names_are_not():
    texts, technique, tally = masked({"en": "allow_list", "es": 10_000}, LINES[:5])
    assert tally.masked_words <= 2, texts
    assert max(technique.by_language.shares[code] for code in ("en", "es")) < 0.1
    texts, *_ = masked({"en": 3000, "es": 3000})
    assert texts[8] == "[MASK] y [MASK] viven en [MASK] con su familia"
    # ``mehmet`` is a frequent word of Turkish text, and among the names that are given in Germany.
    texts, *_ = masked({"de": 20_000, "tr": 40_000}, ["dün mehmet ile okula gittik", "das ist ein schöner tag"])
    assert texts[0].split()[1] == "[MASK]"
    for mask_names, expected in ((True, "yesterday we went to [MASK] with [MASK]"), (False, LINES[9])):
        texts, *_ = masked({"en": "all", "es": "all"}, mask_names=mask_names)
        assert (texts[0], texts[9]) == (LINES[0], expected)


def test_of_one_language_alone_a_word_is_looked_up_in_its_own():
    """``no`` is a word of both languages: the company that it keeps says of which."""
    texts, *_ = masked({"en": "all", "es": 0})
    assert texts[0] == LINES[0]
    assert set(texts[1].split()) == {"[MASK]"}
    assert texts[2] == "[MASK] I told you that already [MASK] [MASK] [MASK] [MASK]"
    assert texts[5] == "there is no way that we can do this"


@pytest.fixture
def files(tmp_path):
    """Options of a command that masks ``text.txt``; ``kept.txt`` gets the words that are never masked."""
    (tmp_path / "text.txt").write_text("\n".join(LINES[:5]) + "\n", encoding="utf-8")
    names = {"input": "text.txt", "output": "masked.txt", "allowed-words": "kept.txt", "report": "a.json"}
    return [word for option, name in names.items() for word in (f"--{option}", str(tmp_path / name))]


def test_allowed_words_are_written_with_their_language(tmp_path, files):
    for second, words in (("es", {"the\ten", "nada\tes", "no", "no\ten", "no\tes"}), ("hi-Latn", {"mujhe\thi-Latn"})):
        lists = f"lists={{en: 500, {second}: 500}}"
        assert main(["mask", *files, "--technique", "language_lists", "--set", lists]) == 0
        kept = (tmp_path / "kept.txt").read_text(encoding="utf-8").splitlines()
        assert words <= set(kept)
        assert "nada" not in kept
    assert "mujhe" in read_word_list(tmp_path / "kept.txt", of_languages=True).by_language["hi-Latn"]


def test_chinese_is_divided_where_no_space_divides_it():
    """Offsets are those of the line, so that the sidecar gives it back; words are counted as they are divided."""
    pytest.importorskip("jieba")
    lines = ["我明天去 shopping，然后OK了", "我们的 meeting 很有意思。", "the weather is nice 今天"] * 3
    technique = LanguageLists(kind="language_lists", lists={"en": "all", "zh": 20}).build(None, 1)
    tally = MaskingTally()
    found = list(technique.mask(lines, "mask", tally, with_spans=True))
    assert found[0][0] == "我[MASK][MASK] shopping，[MASK]OK了"
    assert [restored(line, *each) for line, each in zip(lines, found, strict=True)] == lines
    assert tally.words == 3 * (7 + 5 + 5)
    assert masked({"en": "all", "zh": "all"}, lines)[0] == lines


@pytest.mark.parametrize(
    ("masked_word", "line", "marked", "bits"),
    [("hermana", 1, "mi [MASK:es] no", (0, 0.3)), ("pero", 2, "[MASK:es] I told", (1, 8))],
)
def test_a_marker_names_its_language_and_what_that_gives_away_is_measured(tmp_path, masked_word, line, marked, bits):
    """Among words of its own language a word's is no surprise; in front of another one it is."""
    path = tmp_path / "words.txt"
    path.write_text("\n".join({*" ".join(LINES).split()} - {masked_word}), encoding="utf-8")
    texts, technique, _ = masked({"en": "all", "es": str(path)}, tell_languages=True)
    assert texts[line].startswith(marked)
    assert bits[0] < technique.marker_language_bits < bits[1]


@pytest.mark.parametrize("technique", ["allow_list", "language_lists", "combination"])
def test_every_report_says_what_was_masked_of_each_language(tmp_path, files, capsys, technique):
    """By a technique that knows no languages as by one that does; a list of English words is warned of."""
    parts = ["--set", "rule=union", "--set", "parts=[{kind: language_lists}, {kind: allow_list}]"]
    options = {"allow_list": ["--languages", "en,es"], "combination": parts}.get(technique, [])
    assert main(["mask", "--technique", technique, *options, *files]) == 0
    assert ("masked more than 2 times" in capsys.readouterr().err) == bool(options)
    measured = json.loads((tmp_path / "a.json").read_text())["measured"]
    assert measured["most_masked_language"] == max(measured["masked_by_language"].values())


def test_words_at_a_switch_are_kept_where_they_are_words_of_their_language():
    """A name at a switch is none of them, and neither is a word elsewhere."""
    lost, kept = (masked({"en": 500, "es": 500}, keep_switch_points=keep)[0] for keep in (False, True))
    assert lost[6] == "the [MASK] estaba [MASK]"
    assert kept[6] == "the carburettor estaba [MASK]"
    assert kept[7].split()[3:6] == ["[MASK]", "with", "[MASK]"]
