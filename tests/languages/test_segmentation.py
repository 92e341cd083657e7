"""Words of scripts that set no spaces."""

import sys

import pytest

from tasks.cli import main
from tasks.languages import segmentation
from tasks.languages.segmentation import divider
from tasks.languages.word_languages import WordLanguages
from tasks.masking.combination import Combination


@pytest.mark.parametrize(
    ("languages", "package", "text", "words"),
    [
        ("en zh", "jieba", "OK了，我们[MASK][PERSON]去 don’t go。", "OK 了 ， 我们 [MASK] [PERSON] 去 don’t go 。"),
        ("en zh", "jieba", "我們很高兴", "我們 很 高兴"),
        ("en ja", "ipadic", "昨日OKでした、コーヒーを飲んだ", "昨日 OK でし た 、 コーヒー を 飲ん だ"),
        ("en ja", "ipadic", "ﾃﾚﾋﾞ", "ﾃﾚﾋﾞ"),
        ("de tr", None, "我们 sind   hier", "我们 sind hier"),
        ("en he", None, "we saw שלום OK", "we saw שלום OK"),
    ],
)
def test_lines_are_divided_and_nothing_is_lost(languages, package, text, words):
    if package:
        pytest.importorskip(package)
    divided = divider(languages.split())(text)
    assert divided == words.split()
    assert "".join(divided) == "".join(text.split())


def test_languages_of_divided_words():
    pytest.importorskip("jieba")
    divide = divider(["zh", "en"])
    lines = [divide(line) for line in ("我们明天去 shopping，OK了", "the weather is nice 今天很好")]
    found = [line.languages for line in WordLanguages(["zh", "en"], lines).tag(lines)]
    assert found == [["zh", "zh", "zh", "en", None, "en", "zh"], ["en", "en", "en", "en", "zh", "zh", "zh"]]


def test_right_to_left_text_has_languages_and_names_no_capital():
    lines = [line.split() for line in ["we saw the שלום ילדים", "אני רוצה to go home"]]
    found = [line.languages for line in WordLanguages(["en", "he"], lines, names=True).tag(lines)]
    assert found == [["en", "en", "en", "he", "he"], ["he", "he", "en", "en", "en"]]


def test_without_the_package_one_line_says_what_to_install(tmp_path, capsys, monkeypatch):
    segmentation._dictionary.cache_clear()
    monkeypatch.setitem(sys.modules, "jieba", None)
    (tmp_path / "text.txt").write_text("我们 go\n", encoding="utf-8")
    assert main(["languages", "--pair", "zh,en", "--input", str(tmp_path / "text.txt")]) == 1
    assert "pip install 'palimpsest[segmentation]'" in capsys.readouterr().err
    segmentation._dictionary.cache_clear()


def test_divided_words_do_not_meet_those_of_other_techniques():
    parts = [{"kind": "language_lists", "lists": {"en": "all", "zh": 5}}, {"kind": "allow_list"}]
    with pytest.raises(ValueError, match="divides Chinese and Japanese"):
        Combination(kind="combination", rule="union", parts=parts)
