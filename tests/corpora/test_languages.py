import pytest

from tasks.corpora.languages import UNDETERMINED, Languages, WatchedText, language_shares

SENTENCES = {
    "en": ["I live in Stuttgart.", "Are you coming tonight?", "Ok", "My sister is called Anna."],
    "de": ["Ich wohne in Stuttgart.", "Kommst du heute Abend?", "Ok", "Meine Schwester heißt Anna."],
    "hi": ["मैं दिल्ली में रहता हूँ", "क्या आप कल शाम को घर पर हैं?"],
    "zh": ["我今天去学校。", "你什么时候回来？", "王明住在上海。"],
}
SCRIPTS = {"en": "LATIN", "de": "LATIN", "hi": "DEVANAGARI", "zh": "CJK"}


def test_the_languages_and_scripts_of_a_text_by_their_shares_of_words():
    for language, sentences in SENTENCES.items():
        assert language_shares(sentences) == Languages({language: 1.0}, {SCRIPTS[language]: 1.0})
    found = language_shares([*SENTENCES["en"] * 20, *SENTENCES["hi"] * 20])
    # 14 words of English and 13 of Hindi.
    assert found.languages == pytest.approx({"en": 14 / 27, "hi": 13 / 27})
    assert language_shares(["", "123 😀 !!"]) == Languages({}, {})
    assert language_shares(["ok"]) == Languages({UNDETERMINED: 1.0}, {"LATIN": 1.0})
    assert set(language_shares([*SENTENCES["en"] * 100, *SENTENCES["zh"] * 100], most=100).languages) == {"en", "zh"}


@pytest.mark.parametrize(
    ("english", "foreign", "language", "warned"),
    [
        (20, 20, "de", True),  # 560 words, half of them German
        (40, 2, "de", False),
        (3, 2, "de", False),  # of few words a language is taken for another one now and then
        (3, 1, "hi", True),  # another script shows in any text
        (0, 1, "de", False),  # 13 words say nothing
    ],
)
def test_a_text_that_a_technique_does_not_know_is_warned_of(english, foreign, language, warned):
    lines = [*SENTENCES["en"] * english, *SENTENCES[language] * foreign]
    text = WatchedText(lines)
    assert list(text) == lines
    assert [f"% {language}" in warning for warning in text.warnings("crf", ["en"])] == [True] * warned
