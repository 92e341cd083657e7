"""``palimpsest examples``: made-up sentences go the way of the private ones."""

from pathlib import Path

import pytest
import yaml
from fill_command import fill, report, run, write

from tasks.cli import main
from tasks.filling.examples import SENTENCES

ROOT = Path(__file__).parents[2]
LIST = "masked/allow_list/allowed_words.txt"


def write_parameters(**filling):
    parameters = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    parameters["filling"] |= {"top_k": {"kind": "top_k", "k": 2}, "unigram": {"kind": "unigram", **filling}}
    Path("params.yaml").write_text(yaml.safe_dump(parameters, sort_keys=False), encoding="utf-8")


@pytest.fixture
def experiment(folder):
    """A masked corpus with its list of kept words, and parameters that compare little."""
    write_parameters()
    write("private.txt", ["Zyxwquill called the manager about a house."])
    write("counts.tsv", ["the\t90", "zebra\t8", "quartz\t5"])
    write("generic.txt", ["The zebra saw a quartz."])
    Path(LIST).parent.mkdir(parents=True)
    files = {"input": "private.txt", "output": "masked/allow_list/text.txt", "allowed_words": LIST}
    assert run("mask", technique="allow_list", params="params.yaml", **files) == 0


def examples(filler):
    """The report, and what it has of the one technique."""
    command = "examples --params params.yaml --masked masked --word-counts counts.tsv --generic generic.txt --seed 7 "
    command += "--report report.json --cell dataset=chat,filler=tiny --fills allow_list/top_k allow_list/unigram"
    assert main([*command.split(), "--filler", filler]) == 0
    (found,) = report()["measured"]["by_technique"]
    return report(), found


def test_shipped_sentences_are_masked_and_filled_as_the_commands_do(experiment, bert):
    written, found = examples(bert)
    assert written["cell"] == {"dataset": "chat", "technique": None, "method": None, "filler": "tiny", "seed": 7}
    assert written["measured"]["raw"] == SENTENCES.read_text(encoding="utf-8").splitlines()
    assert found["technique"] == "allow_list"
    assert "My name is [MASK] [MASK]" in found["masked"][0]
    assert [(each["method"], each["filler"]) for each in found["filled"]] == [("top_k", "tiny"), ("unigram", None)]
    assert "zyxwquill" not in str(written).lower()
    # The same lines through the command that a stage calls.
    write("text.txt", found["masked"])
    for each, filler in zip(found["filled"], (bert, None), strict=True):
        files = {"params": "params.yaml", "filler": filler, "word_counts": "counts.tsv", "allowed_words": LIST}
        assert fill(each["method"], seed=7, **files)[0] == each["lines"]


def test_a_method_that_counts_masked_words_goes_by_the_domain(experiment, bert):
    """Examples are public, and read nothing private."""
    found = []
    for settings in ({"prior": "counted", "counts": {"epsilon": 8.0}}, {"prior": "domain"}):
        write_parameters(**settings)
        found.append(examples(bert)[1]["filled"])
    assert found[0] == found[1]
    assert not Path(".palimpsest").exists()
