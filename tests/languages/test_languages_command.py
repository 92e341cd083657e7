"""'palimpsest languages': labelled words as they are published, measures of mixing by hand, and scores."""

import json

import pytest
from command_results import refusal, report

from tasks.languages.labelled_words import LabelledWords, read_labelled_words
from tasks.languages.mixing import Mixing, burstiness, code_mixing_index, islands, multilingual_index, switch_points
from tasks.languages.scores import SWITCHES, language_scores
from tasks.languages.word_languages import NAME


@pytest.mark.parametrize(
    ("tongues", "index", "switches", "lengths"),
    [
        # The two examples of Das and Gambäck.
        ("eeeeesss", 37.5, [5], [5, 3]),
        ("eeesssdd", 62.5, [3, 6], [3, 3, 2]),
        # What has no language is never the majority, and no switch.
        ("....se", 50.0, [5], [1, 1]),
        ("eNNNNes", 100 / 3, [6], [2, 1]),
        ("", 0.0, [], []),
    ],
)
def test_mixing_of_a_line_by_hand(tongues, index, switches, lengths):
    languages = [{".": None, "N": NAME}.get(x, x) for x in tongues]
    assert code_mixing_index(languages) == pytest.approx(index)
    assert (switch_points(languages), islands(languages)) == (switches, lengths)


def test_measures_of_a_corpus_by_hand():
    assert [multilingual_index(counts) for counts in ([5, 5], [5, 0], [0, 0])] == [pytest.approx(1), 0, None]
    assert multilingual_index([3, 1]) == pytest.approx((1 - 10 / 16) / (10 / 16))
    assert [burstiness(lengths) for lengths in ([3], [2, 2, 2], [1, 3])] == [None, -1, pytest.approx(-1 / 3)]
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


BANGOR = """word_id\tutterance_id\tlocation\tsurface\tauto\tspeaker\tlangid
1\t1\t1\tand\tand.CONJ\tANA\teng
2\t1\t2\tcasa\thouse.N\tANA\tspa
3\t1\t3\t.\t\tANA\t999
4\t2\t1\tno\tno\tLEO\teng&spa
5\t2\t2\tflipeando\tflip\tLEO\teng+spa
(5 rows)
"""
DENGLISCH = "source,user_name,sen_id,sen_num,token,categ\nr,u,p1,1,Das,D\nr,u,p1,1,Meeting,E\nr,u,p1,2,gemanaged,M\n"
SENTIMIX = "meta\t1\tpositive\nthe\tlang1\ncasa\tlang2\nAna\tne\n:)\tother\n\nmeta\t2\tneutral\nhola\tlang2\n"


@pytest.mark.parametrize(
    ("content", "pair", "lines"),
    [
        (BANGOR, ["en", "es"], {"and casa .": ["en", "es", None], "no flipeando": [None, "mixed"]}),
        (DENGLISCH, ["de", "en"], {"Das Meeting": ["de", "en"], "gemanaged": ["mixed"]}),
        (SENTIMIX, ["en", "es"], {"the casa Ana :)": ["en", "es", NAME, None], "hola": ["es"]}),
        ("yeh\tHin\nbook\tEng\n", ["hi", "en"], {"yeh book": ["hi", "en"]}),
        ('{"text": "we saw Ana", "languages": "eeb", "names": [2]}', ["en", "es"], {"we saw Ana": ["en", "en", NAME]}),
    ],
    ids=["Bangor", "Denglisch", "SentiMix", "words and codes", "JSON lines"],
)
def test_labelled_words_as_they_are_published(tmp_path, content, pair, lines):
    (tmp_path / "published").write_text(content, encoding="utf-8")
    found = read_labelled_words(tmp_path / "published", pair)
    assert {" ".join(line.words): line.languages for line in found} == lines


def test_the_command_tags_measures_and_scores(tmp_path, capsys):
    text, tags, gold = (tmp_path / name for name in ("text.txt", "tags.jsonl", "gold.jsonl"))
    line = "they said it was fine but yo creo que es muy tarde"
    text.write_text(f"{line}\n\n", encoding="utf-8")
    gold.write_text(json.dumps({"text": line, "languages": "eeeeeessssss"}))
    document = report("languages", "--pair", "en,es", "--input", text, "--output", tags, "--gold", gold)
    tagged, empty = map(json.loads, tags.read_text(encoding="utf-8").splitlines())
    assert (tagged["words"], tagged["languages"]) == (line.split(), ["en"] * 6 + ["es"] * 6)
    assert (tagged["code_mixing_index"], tagged["switch_points"], empty["words"]) == (50.0, [6], [])
    assert tags.stat().st_mode & 0o077 == 0
    assert (document["measured"]["f1"]["en"], document["measured"]["words"], document["warnings"]) == (1.0, 12, [])
    assert "creo" not in capsys.readouterr().err + json.dumps(document)
    assert next(iter(read_labelled_words(tags, ["en", "es"]))).languages == tagged["languages"]


@pytest.mark.parametrize(
    ("pair", "text", "gold", "error"),
    [
        ("en", "a", None, "two different codes"),
        ("zz,xx", "a", None, "no list of words for any of them"),
        ("en,es", "", None, "holds no word"),
        ("en,es", "a", '{"text": "so ein Tag", "languages": "ee"}', "line 1: needs a language for each word"),
        ("en,es", "a", "no json", "in no known form"),
    ],
)
def test_refusals(tmp_path, pair, text, gold, error):
    (tmp_path / "text.txt").write_text(f"{text}\n")
    (tmp_path / "gold.jsonl").write_text(f"{gold}\n")
    options = ["--gold", tmp_path / "gold.jsonl"] if gold else []
    assert error in refusal("languages", "--pair", pair, "--input", tmp_path / "text.txt", *options)
