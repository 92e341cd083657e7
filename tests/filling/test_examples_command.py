"""``palimpsest examples``: made-up sentences go the way of the private ones."""

import json
from pathlib import Path

import pytest
import yaml
from tiny_masked_models import random_bert, save, word_piece_tokenizer

from tasks.cli import main
from tasks.filling.examples import SENTENCES

ROOT = Path(__file__).parents[2]


@pytest.fixture
def experiment(tmp_path, monkeypatch):
    """A masked corpus with its list of kept words, a tiny filler, and parameters that compare little."""
    monkeypatch.chdir(tmp_path)
    parameters = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    parameters["filling"] |= {"top_k": {"kind": "top_k", "k": 2}, "unigram": {"kind": "unigram"}}
    Path("params.yaml").write_text(yaml.safe_dump(parameters, sort_keys=False), encoding="utf-8")
    Path("private.txt").write_text("Zyxwquill called the manager about a house.\n", encoding="utf-8")
    Path("counts.tsv").write_text("the\t90\nzebra\t8\nquartz\t5\n", encoding="utf-8")
    Path("generic.txt").write_text("The zebra saw a quartz.\n", encoding="utf-8")
    Path("masked/allow_list").mkdir(parents=True)
    mask = ["mask", "--params", "params.yaml", "--technique", "allow_list", "--input", "private.txt"]
    folder = "masked/allow_list"
    assert main([*mask, "--output", f"{folder}/text.txt", "--allowed-words", f"{folder}/allowed_words.txt"]) == 0
    save(random_bert(word_piece_tokenizer()), word_piece_tokenizer(), tmp_path / "filler")
    return tmp_path


def examples(*options):
    command = ["examples", "--params", "params.yaml", "--masked", "masked", "--filler", "filler"]
    command += ["--word-counts", "counts.tsv", "--generic", "generic.txt"]
    command += ["--report", "examples.json", "--seed", "7"]
    options = options or ["--fills", "allow_list/top_k", "allow_list/unigram"]
    cell = [] if "--cell" in options else ["--cell", "dataset=chat,filler=tiny"]
    return main([*command, *cell, *options])


def test_shipped_sentences_are_masked_and_filled_as_the_commands_do(experiment):
    assert examples() == 0
    report = json.loads(Path("examples.json").read_text(encoding="utf-8"))
    assert report["cell"] == {"dataset": "chat", "technique": None, "method": None, "filler": "tiny", "seed": 7}
    raw = report["measured"]["raw"]
    assert raw == SENTENCES.read_text(encoding="utf-8").splitlines()
    (found,) = report["measured"]["by_technique"]
    assert found["technique"] == "allow_list"
    assert "My name is [MASK] [MASK]" in found["masked"][0]
    assert [(fill["method"], fill["filler"]) for fill in found["filled"]] == [("top_k", "tiny"), ("unigram", None)]

    # The same lines through the commands that a stage calls.
    Path("masked_examples.txt").write_text("\n".join(found["masked"]) + "\n", encoding="utf-8")
    for fill, filler in zip(found["filled"], (["--filler", "filler"], []), strict=True):
        command = ["fill", "--params", "params.yaml", "--method", fill["method"], "--seed", "7", *filler]
        command += ["--input", "masked_examples.txt", "--output", "filled.txt", "--word-counts", "counts.tsv"]
        assert main([*command, "--allowed-words", "masked/allow_list/allowed_words.txt"]) == 0
        assert fill["lines"] == Path("filled.txt").read_text(encoding="utf-8").splitlines()
    assert "zyxwquill" not in json.dumps(report).lower()


def test_a_method_that_counts_masked_words_goes_by_the_domain(experiment):
    """Examples are public, and read nothing private."""
    parameters = yaml.safe_load(Path("params.yaml").read_text(encoding="utf-8"))
    lines = []
    for settings in ({"prior": "counted", "counts": {"epsilon": 8.0}}, {"prior": "domain"}):
        parameters["filling"]["unigram"] = {"kind": "unigram", **settings}
        Path("params.yaml").write_text(yaml.safe_dump(parameters, sort_keys=False), encoding="utf-8")
        assert examples() == 0
        (found,) = json.loads(Path("examples.json").read_text(encoding="utf-8"))["measured"]["by_technique"]
        lines.append([fill["lines"] for fill in found["filled"] if fill["method"] == "unigram"])
    assert lines[0] == lines[1]
    assert not Path(".palimpsest").exists()
