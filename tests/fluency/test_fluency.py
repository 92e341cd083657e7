"""How well fills read: what the tagger, the words and a language model say of them."""

import json

import pytest
from changed_parameters import parameters, write_parameters
from command_results import measured
from marked_text import MaskedText
from tiny_causal_models import causal_tokenizer, random_llama, save

from tasks.corpora.text_lines import write_lines

RAW = [
    "The {dog} slept in the {garden} .",
    "She {walked} home with two {friends} .",
    "It rained all day .",
    "We saw {Paris} .",
]
NOUNS = [
    "The cat slept in the kitchen .",
    "She jumped home with two mothers .",
    "It rained all day .",
    "We saw London .",
]
OTHERS = ["The and slept in the with .", "She of home with two and .", "It rained all day .", "We saw of ."]


@pytest.fixture
def fluency_of(tmp_path, monkeypatch):
    """Measures fills of a small corpus by the command, as the stage does."""
    monkeypatch.chdir(tmp_path)
    raw = MaskedText.write(tmp_path / "masked" / "allow_list", RAW).raw
    (tmp_path / "filled" / "allow_list").mkdir(parents=True)

    def measure(fills, **settings):
        document = parameters()
        empty = {key: [] for key in ("speech_datasets", "recognisers", "detectors", "taggers", "gold_sets")}
        compare = {"techniques": ["allow_list"], "fills": [{"methods": list(fills)}], **empty}
        methods = document["filling"] | {name: {"kind": "unigram"} for name in fills}
        write_parameters(compare=document["compare"] | compare, filling=methods, fluency=settings)
        for name, lines in fills.items():
            write_lines(tmp_path / "filled" / "allow_list" / f"{name}-1.txt", lines)
        command = ["fluency", "--params", "params.yaml", "--cell", "dataset=chat"]
        found = measured(*command, "--raw", raw, "--masked", "masked", "--fills", "filled")["by_fill"]
        return [found[f"chat/allow_list/{name}-1"] for name in fills]

    return measure


def test_what_a_tagger_and_the_words_say(fluency_of):
    repeated = ["The the slept in the the .", *NOUNS[1:]]
    nouns, others, repeated = found = fluency_of({"nouns": NOUNS, "others": OTHERS, "repeated": repeated})
    assert nouns["part_of_speech_match"] == nouns["form_match"] == nouns["variety"] == 1.0
    assert nouns["places"] == 5
    assert others["part_of_speech_match"] <= 0.2
    assert repeated["repeated"] == pytest.approx(2 / 5)
    assert (nouns["repeated"], repeated["repeated_before"]) == (0, 0)
    assert not [word for word in ("garden", "Paris", "kitchen", "London") if word in json.dumps(found)]


def test_a_judge_finds_the_text_itself_as_probable_as_itself(fluency_of, tmp_path):
    tokenizer = causal_tokenizer()
    save(random_llama(tokenizer), tokenizer, tmp_path / "judge")
    raw = [line.replace("{", "").replace("}", "") for line in RAW]
    same, other = fluency_of({"same": raw, "nouns": NOUNS}, judge=str(tmp_path / "judge"))
    assert same["times_raw_perplexity"] == pytest.approx(1, abs=1e-6)
    assert same["times_raw_perplexity_ci"] == pytest.approx([1, 1], abs=1e-6)
    low, high = other["times_raw_perplexity_ci"]
    assert low < other["times_raw_perplexity"] < high
    assert other["judged_lines"] == 3
