"""How well fills read: what the tagger, the words and a language model say of them."""

import json
from pathlib import Path

import pytest
import yaml
from marked_text import MaskedText
from tiny_causal_models import causal_tokenizer, random_llama, save

from tasks.cli import main
from tasks.corpora.text_lines import write_lines

ROOT = Path(__file__).parents[2]
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
def measured(tmp_path, monkeypatch):
    """Measures fills of a small corpus by the command, as the stage does."""
    monkeypatch.chdir(tmp_path)
    text = MaskedText.write(tmp_path / "masked" / "allow_list", RAW)

    def measure(fills, **settings):
        document = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
        document["compare"] |= {
            "techniques": ["allow_list"],
            "fills": [{"methods": list(fills)}],
            "speech_datasets": [],
            "recognisers": [],
            "detectors": [],
            "taggers": [],
            "gold_sets": [],
        }
        document["filling"] |= {name: {"kind": "unigram"} for name in fills}
        document["fluency"] = settings
        (tmp_path / "params.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
        for name, lines in fills.items():
            (tmp_path / "filled" / "allow_list").mkdir(parents=True, exist_ok=True)
            write_lines(tmp_path / "filled" / "allow_list" / f"{name}-1.txt", lines)
        command = ["fluency", "--params", "params.yaml", "--cell", "dataset=chat", "--report", "report.json"]
        assert main([*command, "--raw", str(text.raw), "--masked", "masked", "--fills", "filled"]) == 0
        found = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["measured"]["by_fill"]
        return [found[f"chat/allow_list/{name}-1"] for name in fills]

    return measure


def test_what_a_tagger_and_the_words_say(measured, tmp_path):
    nouns, others, repeated = measured(
        {"nouns": NOUNS, "others": OTHERS, "repeated": ["The the slept in the the .", *NOUNS[1:]]}
    )
    assert nouns["part_of_speech_match"] == nouns["form_match"] == 1.0
    assert nouns["places"] == 5
    assert nouns["variety"] == 1.0
    assert others["part_of_speech_match"] <= 0.2
    assert repeated["repeated"] == pytest.approx(2 / 5)
    assert (nouns["repeated"], repeated["repeated_before"]) == (0, 0)
    report = (tmp_path / "report.json").read_text(encoding="utf-8")
    assert not [word for word in ("garden", "Paris", "kitchen", "London") if word in report]


def test_a_judge_finds_the_text_itself_as_probable_as_itself(measured, tmp_path):
    tokenizer = causal_tokenizer()
    save(random_llama(tokenizer), tokenizer, tmp_path / "judge")
    raw = ["The dog slept in the garden .", "She walked home with two friends .", RAW[2], "We saw Paris ."]
    same, other = measured({"same": raw, "nouns": NOUNS}, judge=str(tmp_path / "judge"))
    assert same["times_raw_perplexity"] == pytest.approx(1, abs=1e-6)
    assert same["times_raw_perplexity_ci"] == pytest.approx([1, 1], abs=1e-6)
    low, high = other["times_raw_perplexity_ci"]
    assert low < other["times_raw_perplexity"] < high
    assert other["judged_lines"] == 3


def test_the_fills_follow_from_the_parameters(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("raw.txt", "masked", "filled"):
        (tmp_path / name).mkdir() if "." not in name else (tmp_path / name).write_text("a\n")
    assert main(["fluency", "--raw", "raw.txt", "--masked", "masked", "--fills", "filled"]) == 1
    assert "give --params and --cell dataset=NAME" in capsys.readouterr().err
