"""Each method's fills with a tiny masked model, however the text is divided and however often it is filled."""

import json

import pytest
from stage_commands import settings
from tiny_masked_models import bert_of_bias, save, word_piece_tokenizer

from tasks.cli import main
from tasks.corpora.sidecar import MaskedSpan, write_sidecar
from tasks.filling import filled_lines

TOKENIZER = word_piece_tokenizer()
LIKED = {"cat": 2.0, "dog": 1.5, "mat": 1.0, "tom": 0.5, "paris": 0.0, "red": -0.5}
LINES = ["the [MASK] sat on a [MASK]", "[MASK] [MASK] ran.", "no marker", "THE [MASK] SAT", "i saw [MASK]"] * 2
FIXED = "weights={filler: 1.0, frequency: 1.0, average: 0.0}"
WRITTEN = [
    ("top_1", [], "the cat sat on a cat|Cat ran.|THE CAT SAT|i saw cat"),
    ("top_k", ["k=3"], "the mat sat on a mat|Dog ran.|THE DOG SAT|i saw mat"),
    ("sample", ["temperature=2.0"], "the mat sat on a dog|Tom ran.|THE TOM SAT|i saw tom"),
    ("log_linear", [FIXED], "the tom sat on a dog|Tom ran.|THE TOM SAT|i saw tom"),
    ("unigram", [], "the paris sat on a paris|Tom ran.|THE PARIS SAT|i saw dog"),
    ("surrogate", [], "the red sat on a red|dog dog ran.|THE DOG SAT|i saw mat"),
]
"""Method, settings, and the first four filled lines with a marker."""


@pytest.fixture
def fill(tmp_path, monkeypatch):
    """Runs the command; returns the filled lines and what was measured."""
    monkeypatch.chdir(tmp_path)
    filler = save(bert_of_bias(TOKENIZER, LIKED, others=-30.0), TOKENIZER, tmp_path / "filler")
    (tmp_path / "masked.txt").write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    (tmp_path / "kept.txt").write_text("the\na\ncat\n", encoding="utf-8")
    (tmp_path / "counts.tsv").write_text("the\t90\ncat\t9\nTom\t6\ndog\t5\nParis\t3\nmat\t2\nred\t1\n")
    spans = [
        [
            MaskedSpan(4 * marker, 4 * marker + 3, "MASK", "list", "dog", marker)
            for marker in range(line.count("[MASK]"))
        ]
        for line in LINES
    ]
    write_sidecar(tmp_path / "sidecar.jsonl", spans)

    def run(method, *options):
        files = {
            "input": "masked.txt",
            "allowed-words": "kept.txt",
            "word-counts": "counts.tsv",
            "report": "report.json",
        }
        files |= {"sidecar": "sidecar.jsonl", "output": "filled.txt"}
        if method not in ("unigram", "surrogate"):
            files["filler"] = filler
        given = [f"--{name}={path}" for name, path in files.items()]
        assert main(["fill", f"--method={method}", *given, *settings(*options)]) == 0
        measured = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["measured"]
        return (tmp_path / "filled.txt").read_text(encoding="utf-8").splitlines(), measured

    return run


@pytest.mark.parametrize(("method", "options", "written"), WRITTEN)
def test_the_fills_of_a_method(fill, monkeypatch, method, options, written):
    lines, measured = fill(method, *options)
    assert "|".join([line for number, line in enumerate(lines) if "[" in LINES[number]][:4]) == written
    assert (measured["lines"], measured["markers"]) == (10, 12)
    assert measured["fills"] == (12 if method == "surrogate" else 10)
    # Neither parts nor batches decide anything.
    monkeypatch.setattr(filled_lines, "PART_LINES", 3)
    batch = ["batch_sentences=1"] if method not in ("unigram", "surrogate") else []
    assert fill(method, *options, *batch)[0] == lines
    if method != "top_1":
        copies, twice = fill(method, *options, "copies=2")
        assert copies[:10] == lines != copies[10:]
        assert twice["fills"] == 2 * measured["fills"]
