import io
import json
import math
import subprocess
import sys

import pytest
from stage_commands import settings
from tiny_masked_models import bert_of_bias, random_bert, save, word_piece_tokenizer
from transformers import AutoModelForMaskedLM, BertModel

from tasks.cli import main
from tasks.corpora.sidecar import MaskedSpan, write_sidecar
from tasks.filling import filled_lines

TOKENIZER = word_piece_tokenizer()


@pytest.fixture(scope="module")
def filler(tmp_path_factory):
    model = bert_of_bias(TOKENIZER, {"cat": math.log(4), "dog": math.log(2), "tom": 0.0}, others=-30.0)
    return save(model, TOKENIZER, tmp_path_factory.mktemp("fillers") / "tiny")


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "masked.txt").write_text("the [MASK] sat\n\n[MASK] [MASK] ran\nno marker\n", encoding="utf-8")
    (tmp_path / "allowed_words.txt").write_text("cat\nthe\n", encoding="utf-8")
    (tmp_path / "word_counts.tsv").write_text("the\t90\nTom\t6\ndog\t3\nParis\t1\n", encoding="utf-8")
    spans = [
        [MaskedSpan(4, 7, "MASK", "allow_list", "dog", 0)],
        [],
        [MaskedSpan(0, 3, "MASK", "allow_list", "Tom", 0), MaskedSpan(4, 9, "MASK", "allow_list", "Paris", 1)],
        [],
    ]
    write_sidecar(tmp_path / "sidecar.jsonl", spans)
    return tmp_path


def fill(corpus, *options):
    arguments = ["--input", str(corpus / "masked.txt"), "--output", str(corpus / "filled.txt"), *options]
    return main(["fill", *map(str, arguments)])


def test_fill_writes_lines_and_report(corpus, filler):
    status = fill(
        corpus, "--filler", filler, "--method", "top_k", *settings("k=3"),
        "--allowed-words", corpus / "allowed_words.txt", "--word-counts", corpus / "word_counts.tsv",
        "--sidecar", corpus / "sidecar.jsonl",
        "--report", corpus / "report.json", "--cell", "dataset=chat,technique=allow_list,filler=tiny",
    )  # fmt: skip
    assert status == 0
    lines = (corpus / "filled.txt").read_text(encoding="utf-8").splitlines()
    assert lines[0] in ("the dog sat", "the tom sat", "the Tom sat")
    assert lines[1] == ""
    assert lines[2] in ("Dog ran", "Tom ran")
    assert lines[3] == "no marker"
    report = json.loads((corpus / "report.json").read_text(encoding="utf-8"))
    measured = report["measured"]
    assert (measured["lines"], measured["markers"], measured["fills"]) == (4, 3, 2)
    assert measured["fallback_count"] == 0
    assert measured["off_list_share"] == 1.0
    # A share of two places would say which.
    assert measured["restoration_rate"] is measured["expected_restoration_by_frequency"] is None
    assert measured["forward_seconds"] > 0
    assert report["cell"] == {
        "dataset": "chat", "technique": "allow_list", "method": "top_k", "filler": "tiny", "seed": 1,
    }  # fmt: skip
    assert "Tom" not in (corpus / "report.json").read_text(encoding="utf-8")


def test_unigram_needs_no_torch(corpus):
    code = (
        "import sys; from tasks.cli import main; status = main(sys.argv[1:]); "
        "assert 'torch' not in sys.modules and 'transformers' not in sys.modules; sys.exit(status)"
    )
    arguments = ["fill", "--input", corpus / "masked.txt", "--output", "-", "--method", "unigram"]
    options = ["--word-counts", corpus / "word_counts.tsv", "--allowed-words", corpus / "allowed_words.txt"]
    command = [sys.executable, "-c", code, *map(str, arguments + options)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert len(lines) == 4
    assert lines[0] in ("the Tom sat", "the dog sat", "the Paris sat")
    assert "filled 2 places" in result.stderr


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(filled_lines, "PART_LINES", 2)


def test_standard_streams_leave_nothing_behind(corpus, small_parts, monkeypatch):
    class Input:
        buffer = io.BytesIO(b"the [MASK]\n" * 5)

    monkeypatch.chdir(corpus)
    counts = ["--method", "unigram", "--word-counts", str(corpus / "word_counts.tsv")]
    for source, target in (("-", "out.txt"), ("masked.txt", "-")):
        monkeypatch.setattr(sys, "stdin", Input())
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO()))
        assert main(["fill", "--input", source, "--output", target, *counts]) == 0
    assert len((corpus / "out.txt").read_text().splitlines()) == 5
    sys.stdout.seek(0)
    assert len(sys.stdout.read().splitlines()) == 4
    assert not (corpus / ".palimpsest").exists()


@pytest.mark.slow
def test_memory_does_not_grow_with_the_corpus(corpus):
    peaks = []
    for lines in (10_000, 100_000):
        (corpus / "masked.txt").write_text("the [MASK] sat on a [MASK]\n" * lines, encoding="utf-8")
        code = "import sys; from tasks.cli import main; sys.exit(main(sys.argv[1:]))"
        files = ["--input", "masked.txt", "--output", "filled.txt", "--report", "report.json"]
        command = [sys.executable, "-c", code, "fill", *files, "--method", "unigram"]
        subprocess.run([*command, "--word-counts", "word_counts.tsv"], cwd=corpus, check=True, timeout=200)
        peaks.append(json.loads((corpus / "report.json").read_text())["peak_memory_bytes"])
    # Ten times the lines would be ten times the memory if they were all held.
    assert peaks[1] - peaks[0] < 8 * 2**20


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        # One swapped argument must not make the private text a fill.
        ("Tom went to Paris\n", [], "has no marker such as [MASK], so filling would copy it"),
        ("Tom went to Paris\n" * 9, [], "has no marker such as [MASK], so filling would copy it"),
        ("[MASK]\n", ["--allowed-words", "all_words.txt"], "nothing to draw"),
        ("the [MASK] sat\n", ["--sidecar", "sidecar.jsonl"], "more lines"),
        ("[MASK]\n\nran\nno marker\n", ["--sidecar", "sidecar.jsonl"], "line 3: the sidecar has 2 markers"),
        ("[MASK]\n\n[MASK] [MASK] ran\n\n\n", ["--sidecar", "sidecar.jsonl"], "ends before line 5"),
    ],
)
def test_what_cannot_be_filled_is_one_line(corpus, small_parts, monkeypatch, capsys, text, options, message):
    monkeypatch.chdir(corpus)
    (corpus / "masked.txt").write_text(text, encoding="utf-8")
    (corpus / "all_words.txt").write_text("the\ntom\ndog\nparis\n", encoding="utf-8")
    assert fill(corpus, "--method", "unigram", "--word-counts", corpus / "word_counts.tsv", *options) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (corpus / "filled.txt").exists()


def test_train_filler_writes_a_folder_that_fills(tmp_path):
    body = save(BertModel(random_bert(TOKENIZER).config), TOKENIZER, tmp_path / "body")
    (tmp_path / "train.txt").write_text("red cat\n" * 200, encoding="utf-8")
    (tmp_path / "valid.txt").write_text("red cat\nred cat\n", encoding="utf-8")
    arguments = ["--model", body, "--input", tmp_path / "train.txt", "--valid", tmp_path / "valid.txt"]
    rates = ["train_head.learning_rate=0.02", "train_head.body_learning_rate=0.02"]
    training = settings("train_head.steps=60", "train_head.batch_pieces=64", *rates)
    output = ["--output", tmp_path / "filler", "--report", tmp_path / "report.json"]
    assert main(["train-filler", *map(str, arguments + training + output)]) == 0
    measured = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["measured"]
    assert measured["steps"] == 60
    assert measured["valid_top_1_accuracy"] == 1.0
    assert len(measured["fresh_weights"]) == 5
    AutoModelForMaskedLM.from_pretrained(tmp_path / "filler")
    (tmp_path / "masked.txt").write_text("red [MASK]\n", encoding="utf-8")
    filler = ["--filler", str(tmp_path / "filler"), "--method", "top_1"]
    assert (
        main(["fill", "--input", str(tmp_path / "masked.txt"), "--output", str(tmp_path / "filled.txt"), *filler]) == 0
    )
    assert (tmp_path / "filled.txt").read_text(encoding="utf-8") == "red cat\n"


def test_train_filler_copies_a_model_that_has_a_head(tmp_path, filler):
    assert main(["train-filler", "--model", filler, "--output", str(tmp_path / "copy")]) == 0
    model = AutoModelForMaskedLM.from_pretrained(tmp_path / "copy")
    original = AutoModelForMaskedLM.from_pretrained(filler)
    assert all((model.state_dict()[name] == weight).all() for name, weight in original.state_dict().items())
