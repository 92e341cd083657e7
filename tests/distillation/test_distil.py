"""Text drawn in place of a private one: what is dropped of it, and the command on a user's own files."""

import json

import pytest
import torch

from tasks.cli import main
from tasks.corpora.sidecar import MaskedSpan, write_sidecar
from tasks.corpora.text_lines import read_lines, write_lines
from tasks.distillation.distil import Quoted
from tasks.language_model.settings import ArchitectureSettings
from tasks.language_model.transformer.model import TransformerLanguageModel, save_model
from tasks.language_model.vocabulary import END_ID, SPECIAL_TOKENS, Vocabulary
from tasks.results.measures import MEASURES

SECRET = "my name is anna and i live in rome"
PRIVATE = [SECRET, "it is cold today", "nothing to see here at all"]
WORDS = [*dict.fromkeys(" ".join(PRIVATE).split()), "word", "other"]
VOCABULARY = Vocabulary([*SPECIAL_TOKENS, *WORDS])


def spans():
    start = SECRET.index("anna")
    return [[MaskedSpan(start, start + 4, "MASK", "test", "anna", 0)], [], []]


def test_what_quotes_the_private_text_is_dropped(tmp_path):
    write_sidecar(tmp_path / "private.jsonl", spans())
    quoted = Quoted.of(PRIVATE, str(tmp_path / "private.jsonl"), 4)
    reasons = {
        "name is anna and": "quoting",
        "well my name is anna": "quoting",
        "anna and i live there": "quoting",
        "my name is bob and i live in rome": "kept",
        "and i live in rome": "kept",
        "it is cold today": "verbatim",
        "anna is cold": "kept",
        "": "empty",
    }
    assert {line: quoted.reason(tuple(line.split())) for line in reasons} == reasons


def writes(words):
    """A model that finds every one of these words likely, and then the end."""
    sizes = ArchitectureSettings(layers=1, heads=1, width=8, maximum_tokens=16)
    model = TransformerLanguageModel(sizes, len(VOCABULARY))
    model.initialise(1)
    with torch.no_grad():
        model.embedding.weight.zero_()
        model.final_norm.weight.zero_()
        model.final_norm.bias.zero_()
        model.final_norm.bias[0] = 1.0
        model.embedding.weight[:, 0] = -50.0
        model.embedding.weight[[VOCABULARY.ids[word] for word in words], 0] = 0.0
        model.embedding.weight[END_ID, 0] = 0.0
    return model


def test_the_command_writes_as_many_lines_and_no_quotation(tmp_path, capsys):
    write_lines(tmp_path / "private.txt", PRIVATE)
    write_sidecar(tmp_path / "private.jsonl", spans())
    for name, words in (("safe", ["word", "other"]), ("mixed", ["word", "other", "anna"]), ("heard", ["anna"])):
        save_model(tmp_path / name, writes(words), VOCABULARY)

    def call(*options):
        files = [part for name in ("private", "output") for part in (f"--{name}", str(tmp_path / f"{name}.txt"))]
        report = ["--report", str(tmp_path / "report.json")]
        return main(
            ["distil", "--method", "distilled", *files, *report, "--sidecar", str(tmp_path / "private.jsonl"), *options]
        )

    assert call("--model", str(tmp_path / "safe")) == 0
    lines = list(read_lines(tmp_path / "output.txt"))
    assert len(lines) == len(PRIVATE)
    assert {word for line in lines for word in line.split()} <= {"word", "other"}
    measured = json.loads((tmp_path / "report.json").read_text())["measured"]
    assert measured["dropped_quoting"] == 0
    # The summary reads it as it reads a fill's.
    assert {each.field or each.name for each in MEASURES if each.step == "fill" and "." not in (each.field or "")} <= {
        *measured
    }
    # Against a model of the unwanted word, what both can write and only one is left: no 'anna' at all.
    against = ["--model", str(tmp_path / "mixed"), "--unwanted", str(tmp_path / "heard"), "--set", "strength=1"]
    assert call(*against) == 0
    assert "anna" not in " ".join(read_lines(tmp_path / "output.txt"))
    # One that writes nothing but a private neighbourhood of one word: nearly all is dropped, in one line.
    assert call("--model", str(tmp_path / "heard"), "--set", "scanned_words=1") == 1
    told = capsys.readouterr()
    assert "quote the private text" in told.err
    assert "anna" not in told.err + told.out + (tmp_path / "report.json").read_text()
    assert call("--model", str(tmp_path / "safe"), "--set", "alpha=0.1", "--set", "mask=oracle") == 1
    assert "prefers text that it has memorised" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"baselines": ["baseline0"]}, "compare.baselines lacks"),
        ({"fills": [{"methods": ["contrast"], "audited": ["contrast"]}]}, "drawn from a model of the raw text"),
    ],
)
def test_parameters_that_distil_what_is_not_there_are_refused(changes, message, tmp_path):
    from pathlib import Path

    import yaml

    from tasks.errors import ParameterError
    from tasks.parameters.parameter_file import read_parameters

    document = yaml.safe_load((Path(__file__).parents[2] / "params.yaml").read_text(encoding="utf-8"))
    document["filling"]["contrast"] = {"kind": "distilled", "unwanted": "oracle", "strength": 0.5}
    document["compare"] |= {"fills": [{"methods": ["distilled", "contrast"]}]} | changes
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    with pytest.raises(ParameterError, match=message):
        read_parameters(tmp_path / "params.yaml")
