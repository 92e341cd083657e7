"""Synthetic text that mixes languages: where it switches, who writes it, what is dropped, and what it is worth."""

import json
from itertools import islice, pairwise

import pytest
from chat_server import chat_server
from command_results import measured, refusal, write_records
from stage_commands import settings

from tasks.languages.word_languages import TaggedLine
from tasks.mixed_text.switching import Splicer, SwitchStatistics

ENGLISH = ["we went to the house and it was good", "they said that it was the best thing", "I know what you mean now"]
SPANISH = ["mi hermana no quería comer nada", "nosotros tenemos una casa muy grande", "yo creo que es muy tarde ahora"]
MIXED = {
    "we went to the casa and it was good": "eeeeseeee",
    "yo creo que it was the best thing": "ssseeeee",
    "they said that mi hermana no quería comer": "eeesssss",
    "I know that nosotros tenemos una casa": "eeessss",
}
LINES = {"en": [line.split() for line in ENGLISH], "es": [line.split() for line in SPANISH]}


def learned(lines):
    """Statistics of lines by their text, with a letter for the language of each word."""
    tagged = []
    for text, languages in lines.items():
        codes = [{"e": "en", "s": "es", "-": None}[letter] for letter in languages]
        tagged.append(TaggedLine(text.split(), codes, [code or "en" for code in codes], []))
    return SwitchStatistics.learn(["en", "es"], tagged)


def test_what_is_counted_by_hand():
    found = learned({"the casa was big": "esee", "the house was big": "eeee", "the [MASK] casa Zorbulon": "e-ss"})
    assert (found.lines, found.first) == (2, {"en": 2})
    assert found.rate == pytest.approx(3 / 5)
    # Behind a masked word nobody knows what was left: the hidden word counts, and not "the".
    assert found.leave["en"] == {"the": [1, 1], "was": [1, 0], "<3": [1, 1]}
    assert found.seams == {"es": {"en the": {"casa": 1}}, "en": {"es casa": {"was": 1}}}
    assert "orbulon" not in json.dumps(vars(found))


def test_islands_are_stretches_of_the_text_and_as_many_as_peoples():
    statistics = learned(MIXED)
    drawn = list(islice(Splicer(statistics, LINES, {}, 1), 400))
    known = {code: {w for line in rows for w in line} for code, rows in LINES.items()}
    assert all(word in known[code] for words, codes in drawn for word, code in zip(words, codes, strict=True))
    switches = sum(a != b for _, codes in drawn for a, b in pairwise(codes))
    pairs = sum(len(codes) - 1 for _, codes in drawn)
    assert switches / pairs == pytest.approx(statistics.rate, rel=0.25)
    assert drawn[:50] == list(islice(Splicer(statistics, LINES, {}, 1), 50))


def test_one_text_and_a_dictionary_translate_words_where_they_stand():
    back = {"casa": "house", "cosa": "thing", "eso": "it", "dijeron": "said", "saben": "know", "mejor": "best"}
    dictionary = {("es", english): [spanish] for spanish, english in back.items()}
    for words, codes in islice(Splicer(learned(MIXED), {"en": LINES["en"]}, dictionary, 1), 50):
        plain = " ".join(back[w] if code == "es" else w for w, code in zip(words, codes, strict=True))
        assert any(line.startswith(plain) for line in ENGLISH)


FAULTY = {
    "in one language": "they said that it was the best thing",
    "refusals": "I'm sorry, but I cannot do that porque no es posible",
    "in a third language": "ich habe nicht gewusst dass das auch nicht für mich gemacht wurde",
    "repeated": [*MIXED][1],
}


def test_recorded_lines_are_checked_and_dropped_ones_counted(tmp_path):
    rows = [{"pair": "es-en", "text": line} for line in [*MIXED, *FAULTY.values()]]
    recorded, output = write_records(tmp_path / "r.jsonl", rows), tmp_path / "out.txt"
    found = measured("generate-mixed", "--pair", "en,es", "--recorded", recorded, "--output", output)
    assert output.read_text().splitlines() == [*MIXED]
    assert found["dropped"] == dict.fromkeys(FAULTY, 1)
    assert found["synthetic"] is True
    assert "hermana" not in json.dumps(found)


def test_a_language_model_is_asked_once_and_replayed_without_it(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_KEY", "secret")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    styles = ["style: {first} and {second} about {topic}", "topic: work", "topic: food"]
    prompts = write_records(tmp_path / "p.txt", styles)
    answers, first, second = tmp_path / "a.jsonl", tmp_path / "1.txt", tmp_path / "2.txt"
    command = ["generate-mixed", "--pair", "en,es", "--answers", answers, *settings(f"endpoint.prompts={prompts}")]
    with chat_server() as chat:
        chat.answer = lambda prompt: "\n".join(f"{n}. {line}" for n, line in enumerate(MIXED, start=1))
        given = {"url": chat.url, "model": "m", "key_variable": "MY_KEY", "temperature": 0.5}
        measured(*command, "--output", first, *settings(*(f"endpoint.{name}={value}" for name, value in given.items())))
    assert [(path, key) for path, key, _ in chat.asked] == [("/v1/chat/completions", "Bearer secret")] * 2
    body = chat.asked[0][2]
    assert body["messages"][0]["content"] == "English and Spanish about work"
    assert (body["model"], body["temperature"]) == ("m", 0.5)
    assert first.read_text().splitlines() == [*MIXED]
    assert "secret" not in answers.read_text()
    assert answers.stat().st_mode & 0o077 == 0
    measured(*command, "--output", second)
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ("", "give one of --text, --recorded and --answers"),
        ("--text TEXT --mixed TEXT --dictionary TEXT", "line 1: needs a word of en, a tab"),
        ("--text ENGLISH --mixed TEXT", "has no line in es"),
        ("--answers NEW --set endpoint.url=http://127.0.0.1:9/v1", "does not answer"),
        ("--recorded BROKEN", "line 1: no JSON object with a 'text'"),
        ("--answers NEW --set endpoint.url=http://me:key@127.0.0.1/v1", "address with a key in it"),
        ("--answers NEW --set endpoint.url=http://a.example/v1 --set endpoint.prompts=TEXT",
            "would be sent to 'a.example'"),
    ],
)  # fmt: skip
def test_refusals(tmp_path, monkeypatch, options, error):
    monkeypatch.chdir(tmp_path)
    write_records(tmp_path / "TEXT", [*MIXED, *ENGLISH, *SPANISH])
    write_records(tmp_path / "ENGLISH", ENGLISH)
    write_records(tmp_path / "BROKEN", ["{"])
    said = refusal("generate-mixed", "--pair", "en,es", "--output", "out.txt", *options.split())
    assert error in said
    assert "hermana" not in said
