"""``palimpsest fill`` and ``examples``: what methods write and report, in parts, in copies, with little memory."""

from pathlib import Path

import pytest
import torch
from changed_parameters import parameters, write_parameters
from fill_command import fill, refused, report, run, write, write_masked

from tasks.cli import main
from tasks.filling import filled_lines
from tasks.filling.examples import SENTENCES
from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel


@pytest.fixture
def corpus(folder):
    write_masked(["the {dog} sat", "", "{Tom} {Paris} ran", "no marker"])
    write("allowed_words.txt", ["cat", "the"])
    write("counts.tsv", ["the\t90", "Tom\t6", "dog\t3", "Paris\t1"])


def test_fill_writes_lines_and_report(corpus, biased):
    files = {"filler": biased, "allowed_words": "allowed_words.txt", "word_counts": "counts.tsv"}
    cell = "dataset=chat,technique=allow_list,filler=tiny"
    lines, measured = fill("top_k", "k=3", sidecar="sidecar.jsonl", cell=cell, **files)
    assert lines[0] in ("the dog sat", "the Tom sat", "the Paris sat")
    assert lines[1::2] == ["", "no marker"]
    assert lines[2] in ("Dog ran", "Tom ran", "Paris ran")
    assert (measured["lines"], measured["markers"], measured["fills"]) == (4, 3, 2)
    assert (measured["fallback_count"], measured["off_list_share"]) == (0, 1.0)
    # A share of two places would say which.
    assert measured["restoration_rate"] is measured["expected_restoration_by_frequency"] is None
    assert measured["forward_seconds"] > 0
    assert report()["cell"] == dict(dataset="chat", technique="allow_list", method="top_k", filler="tiny", seed=1)
    assert "Tom" not in str(report())


LINES = ["the {dog} sat on a {dog}", "{dog} {dog} ran.", "no marker", "THE {dog} SAT", "i saw {dog}"] * 2
METHODS = {
    "top_1": [],
    "top_k": ["k=3"],
    "sample": ["temperature=2.0"],
    "log_linear": ["weights={filler: 1.0, frequency: 1.0, average: 0.0}"],
    "unigram": [],
    "surrogate": [],
}


@pytest.mark.parametrize("method", METHODS)
def test_neither_parts_nor_batches_nor_further_copies_change_a_fill(folder, bert, monkeypatch, method):
    write_masked(LINES)
    write("kept.txt", ["the", "a", "cat"])
    write("counts.tsv", ["the\t90", "cat\t9", "Tom\t6", "dog\t5", "Paris\t3", "mat\t2", "red\t1"])
    files = {"allowed_words": "kept.txt", "word_counts": "counts.tsv", "sidecar": "sidecar.jsonl"}
    batches, settings = [], METHODS[method]
    if method not in ("unigram", "surrogate"):
        batches, files["filler"] = ["batch_sentences=1"], bert
    lines, measured = fill(method, *settings, **files)
    assert (measured["lines"], measured["markers"]) == (10, 12)
    assert measured["fills"] == (12 if method == "surrogate" else 10)
    monkeypatch.setattr(filled_lines, "PART_LINES", 3)
    copies = 1 if method == "top_1" else 3
    written, of_copies = fill(method, *settings, *batches, f"copies={copies}", **files)
    assert written[:10] == lines
    assert len({tuple(written[start : start + 10]) for start in range(0, len(written), 10)}) == copies
    assert (of_copies["lines"], of_copies["fills"]) == (10 * copies, copies * measured["fills"])


def test_little_memory_changes_no_fill_and_none_for_one_sentence_is_one_line(folder, bert, monkeypatch, capsys):
    write("text.txt", ["the [MASK] sat", "[MASK] ran on the red mat", "tom's [MASK]-re [MASK] .", "a", "[MASK]"] * 4)
    prepared = MaskedLanguageModel.prepared
    most_pieces = 10**6

    def refuse(_module, _arguments, options):
        """As a model that runs out of memory on batches of more pieces, padding included."""
        if options["input_ids"].numel() > most_pieces:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    def with_little_memory(self):
        prepared(self).model.register_forward_pre_hook(refuse, with_kwargs=True)
        return self

    monkeypatch.setattr(MaskedLanguageModel, "prepared", with_little_memory)
    plenty, _ = fill("sample", filler=bert)
    most_pieces = 60
    little, measured = fill("sample", filler=bert)
    assert little == plenty
    assert measured["halved_batches"] > 0
    most_pieces = 2
    error = refused(capsys, "fill", status=75, input="text.txt", method="sample", filler=bert)
    assert "too little memory for a single sentence" in error


def write_filling(**unigram):
    methods = {"top_k": {"kind": "top_k", "k": 2}, "unigram": {"kind": "unigram", **unigram}}
    write_parameters(filling=parameters()["filling"] | methods)


def test_shipped_sentences_are_masked_and_filled_as_the_commands_do(folder, bert):
    """Examples are public, and read nothing private: a method that counts masked words goes by the domain."""
    kept = "masked/allow_list/allowed_words.txt"
    write_filling()
    write("private.txt", ["Zyxwquill called the manager about a house."])
    write("counts.tsv", ["the\t90", "zebra\t8", "quartz\t5"])
    write("generic.txt", ["The zebra saw a quartz."])
    Path(kept).parent.mkdir(parents=True)
    files = {"input": "private.txt", "output": "masked/allow_list/text.txt", "allowed_words": kept}
    assert run("mask", technique="allow_list", params="params.yaml", **files) == 0
    command = "examples --params params.yaml --masked masked --word-counts counts.tsv --generic generic.txt --seed 7 "
    command += "--report report.json --cell dataset=chat,filler=tiny --fills allow_list/top_k allow_list/unigram"

    def examples():
        assert main([*command.split(), "--filler", bert]) == 0
        (found,) = report()["measured"]["by_technique"]
        return report(), found

    written, found = examples()
    assert written["cell"] == {"dataset": "chat", "technique": None, "method": None, "filler": "tiny", "seed": 7}
    assert written["measured"]["raw"] == SENTENCES.read_text(encoding="utf-8").splitlines()
    assert "My name is [MASK] [MASK]" in found["masked"][0]
    assert [(each["method"], each["filler"]) for each in found["filled"]] == [("top_k", "tiny"), ("unigram", None)]
    assert "zyxwquill" not in str(written).lower()
    # The same lines through the command that a stage calls.
    write("text.txt", found["masked"])
    for each, filler in zip(found["filled"], (bert, None), strict=True):
        files = {"params": "params.yaml", "filler": filler, "word_counts": "counts.tsv", "allowed_words": kept}
        assert fill(each["method"], seed=7, **files)[0] == each["lines"]
    filled = []
    for settings in ({"prior": "counted", "counts": {"epsilon": 8.0}}, {"prior": "domain"}):
        write_filling(**settings)
        filled.append(examples()[1]["filled"])
    assert filled[0] == filled[1]
    assert not Path(".palimpsest").exists()


def test_a_sidecar_of_another_text_is_refused_in_a_later_part(corpus, monkeypatch, capsys):
    monkeypatch.setattr(filled_lines, "PART_LINES", 2)
    write("text.txt", ["[MASK]", "", "ran", "no marker"])
    given = {"input": "text.txt", "method": "unigram", "word_counts": "counts.tsv"}
    assert "line 3: the sidecar has 2 markers" in refused(capsys, "fill", sidecar="sidecar.jsonl", **given)
