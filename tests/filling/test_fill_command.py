"""``palimpsest fill``: what it writes and reports, what it loads, and what it does with little memory."""

import io
import subprocess
import sys

import pytest
import torch
from fill_command import fill, lines_of, refused, report, run, write, write_masked

from tasks.filling import filled_lines
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
    assert report()["cell"] == {
        "dataset": "chat", "technique": "allow_list", "method": "top_k", "filler": "tiny", "seed": 1,
    }  # fmt: skip
    assert "Tom" not in str(report())


def test_neither_a_missing_filler_nor_a_fill_without_model_loads_libraries(corpus):
    """In a process of its own, since those of the tests have loaded them."""
    code = (
        "import sys; from tasks.cli import main; print(main(sys.argv[1:10]), main(sys.argv[10:])); "
        "assert not {'torch', 'transformers'} & {*sys.modules}"
    )
    files = ["fill", "--input", "text.txt", "--output"]
    missing = [*files, "o.txt", "--method", "top_k", "--filler", "./filler"]
    unigram = [*files, "-", "--method", "unigram", "--word-counts", "counts.tsv"]
    unigram += ["--allowed-words", "allowed_words.txt"]
    done = subprocess.run([sys.executable, "-c", code, *missing, *unigram], capture_output=True, text=True, check=True)
    *lines, statuses = done.stdout.splitlines()
    assert statuses == "1 0"
    assert lines[0] in ("the Tom sat", "the dog sat", "the Paris sat")
    assert len(lines) == 4
    assert "model folder './filler' does not exist" in done.stderr
    assert "filled 2 places" in done.stderr


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(filled_lines, "PART_LINES", 2)


def test_standard_streams_leave_nothing_behind(corpus, small_parts, folder, monkeypatch):
    class Input:
        buffer = io.BytesIO(b"the [MASK]\n" * 5)

    for source, target in (("-", "out.txt"), ("text.txt", "-")):
        monkeypatch.setattr(sys, "stdin", Input())
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO()))
        assert run("fill", input=source, output=target, method="unigram", word_counts="counts.tsv") == 0
    assert len(lines_of("out.txt")) == 5
    sys.stdout.seek(0)
    assert len(sys.stdout.read().splitlines()) == 4
    assert not (folder / ".palimpsest").exists()


@pytest.mark.slow
def test_memory_does_not_grow_with_the_corpus(corpus):
    peaks = []
    for lines in (10_000, 100_000):
        write("text.txt", ["the [MASK] sat on a [MASK]"] * lines)
        command = [sys.executable, "-m", "tasks.cli", "fill", "--input=text.txt", "--output=o", "--method=unigram"]
        subprocess.run([*command, "--word-counts=counts.tsv", "--report=report.json"], check=True, timeout=200)
        peaks.append(report()["peak_memory_bytes"])
    # Ten times the lines would be ten times the memory if they were all held.
    assert peaks[1] - peaks[0] < 8 * 2**20


@pytest.mark.parametrize(
    ("lines", "files", "message"),
    [
        # One swapped argument must not make the private text a fill.
        (["Tom went to Paris"] * 9, {}, "has no marker such as [MASK], so filling would copy it"),
        (["[MASK]"], {"allowed_words": "all_words.txt"}, "nothing to draw"),
        (["[MASK]", "", "ran", "no marker"], {"sidecar": "sidecar.jsonl"}, "line 3: the sidecar has 2 markers"),
        (["[MASK]", "", "[MASK] [MASK] ran", "", ""], {"sidecar": "sidecar.jsonl"}, "ends before line 5"),
    ],
)
def test_what_cannot_be_filled_is_one_line(corpus, small_parts, capsys, lines, files, message):
    write("text.txt", lines)
    write("all_words.txt", ["the", "tom", "dog", "paris"])
    given = {"input": "text.txt", "method": "unigram", "word_counts": "counts.tsv"}
    assert message in refused(capsys, "fill", **given, **files)


def test_little_memory_changes_no_fill_and_none_for_one_sentence_is_one_line(folder, bert, monkeypatch, capsys):
    write("text.txt", ["the [MASK] sat", "[MASK] ran on the red mat", "tom's [MASK]-re [MASK] .", "a", "[MASK]"] * 4)
    prepared = MaskedLanguageModel.prepared
    most_pieces = 0

    def refuse(_module, _arguments, options):
        """As a model that runs out of memory on batches of more pieces, padding included."""
        if options["input_ids"].numel() > most_pieces:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    def with_little_memory(self):
        prepared(self).model.register_forward_pre_hook(refuse, with_kwargs=True)
        return self

    monkeypatch.setattr(MaskedLanguageModel, "prepared", with_little_memory)
    most_pieces = 10**6
    plenty, _ = fill("sample", filler=bert)
    most_pieces = 60
    little, measured = fill("sample", filler=bert)
    assert little == plenty
    assert measured["halved_batches"] > 0
    most_pieces = 2
    error = refused(capsys, "fill", status=75, input="text.txt", method="sample", filler=bert)
    assert "too little memory for a single sentence" in error
