"""Words that a filler has not as one piece."""

import json
import math

import numpy as np
import pytest
from stage_commands import settings

from tasks.cli import main
from tasks.corpora.sidecar import MaskedSpan, write_sidecar
from tasks.filling.frequencies.word_frequencies import KeptWords, WordFrequencies
from tasks.filling.marker_randomness import MarkerRandomness
from tasks.filling.masked_lm.weighing import BeyondVocabulary
from tasks.filling.masked_sentence import Fill, read_masked_line

FREQUENCIES = WordFrequencies(
    ("the", "tom", "Zanzibar", "quagga", "paris"), np.array([900, 30, 20, 20, 30], dtype=np.int64)
)
"""Off the list: 60 of words that the filler has, 40 of others."""


class Recorder:
    """A filler that writes the number of each slot and remembers what it was given."""

    forward_seconds = 1.5
    candidate_count = 2

    def __init__(self):
        self.seen = []

    def fill(self, sentences, advance):
        self.seen += sentences
        advance(sum(len(sentence.slots) for sentence in sentences))
        return [[Fill(f"slot{slot.first_marker}") for slot in sentence.slots] for sentence in sentences]


@pytest.fixture
def kept(tmp_path):
    path = tmp_path / "kept.txt"
    path.write_text("the\n", encoding="utf-8")
    return KeptWords.read(path)


def beyond(kept, frequencies=FREQUENCIES, candidates=("tom", "PARIS"), seed=1):
    inner, words = Recorder(), {None: frequencies.shared(kept.off_list(frequencies.words))}
    return BeyondVocabulary(inner, candidates, words, MarkerRandomness(seed)), inner


def masked(lines):
    return [
        read_masked_line("the [MASK] and [MASK], [MASK]", number, merge_markers=False) for number in range(1, lines + 1)
    ]


def test_a_share_of_the_places_gets_words_beyond_and_the_filler_reads_them_as_known(kept):
    filler, inner = beyond(kept)
    assert filler.share == {None: 0.4}
    assert filler.candidate_count == 4
    advanced = []
    fills = filler.fill(masked(2000), advanced.append)
    assert sum(advanced) == 6000
    words = [fill.word for line in fills for fill in line]
    drawn = [word for word in words if word in ("Zanzibar", "quagga")]
    assert abs(len(drawn) - 2400) < 4 * math.sqrt(6000 * 0.24)
    assert abs(drawn.count("quagga") - len(drawn) / 2) < 4 * math.sqrt(len(drawn) / 4)
    assert filler.counts == {"beyond_vocabulary": len(drawn)}
    given = {sentence.number: sentence for sentence in inner.seen}
    for number, line in enumerate(fills, start=1):
        texts = "".join(given[number].texts) if number in given else ""
        for index, fill in enumerate(line):
            if fill.word in ("Zanzibar", "quagga"):
                assert number not in given or fill.word in texts
            else:
                # The filler's own word stands at its own marker.
                assert fill.word == f"slot{index}"
    whole = next(line for line in fills if [fill.word[:4] for fill in line] == ["slot", "Zanz", "slot"])
    number = fills.index(whole) + 1
    assert given[number].texts == ("the ", " and Zanzibar, ", "")


def test_what_stands_beside_a_line_changes_nothing(kept):
    together = beyond(kept)[0].fill(masked(50), lambda _: None)
    alone = [beyond(kept)[0].fill([sentence], lambda _: None)[0] for sentence in masked(50)]
    assert together == alone
    assert together != beyond(kept, seed=2)[0].fill(masked(50), lambda _: None)


def fill(folder, filler, *options):
    (folder / "masked.txt").write_text("the [MASK] sat on the [MASK]\n" * 60, encoding="utf-8")
    (folder / "kept_words.txt").write_text("the\nsat\non\n", encoding="utf-8")
    (folder / "counts.tsv").write_text("the\t90\ntom\t60\nzanzibar\t50\nquagga\t10\ncat\t9\n", encoding="utf-8")
    (folder / "generic").mkdir(exist_ok=True)
    (folder / "generic" / "valid.txt").write_text(
        "the cat sat on the dog\nthe tom sat on the cat\n" * 9, encoding="utf-8"
    )
    spans = [MaskedSpan(4, 7, "MASK", "list", "zanzibar", 0), MaskedSpan(15, 18, "MASK", "list", "quagga", 1)]
    write_sidecar(folder / "sidecar.jsonl", [spans] * 60)
    given = [
        "--input", folder / "masked.txt", "--output", folder / "filled.txt", "--report", folder / "report.json",
        "--method", "log_linear", "--kept-words", folder / "kept_words.txt", "--word-counts", folder / "counts.tsv",
        "--generic", folder / "generic", "--set", f"resources.work_folder={folder / 'work'}",
        "--filler", filler, *options,
    ]  # fmt: skip
    return main(["fill", *map(str, given)])


def test_the_command_draws_them_where_it_is_asked_to_and_never_a_forbidden_original(tmp_path, bert, capsys):
    assert fill(tmp_path, bert) == 0
    text = (tmp_path / "filled.txt").read_text(encoding="utf-8")
    assert "zanzibar" not in text.lower()
    assert fill(tmp_path, bert, *settings("beyond_vocabulary=true")) == 0
    text = (tmp_path / "filled.txt").read_text(encoding="utf-8").lower()
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    drawn = text.count("zanzibar") + text.count("quagga")
    assert report["measured"]["beyond_vocabulary"] == drawn
    # 60 of 129, over 120 places.
    assert abs(drawn - 120 * 60 / 129) < 4 * math.sqrt(120 * 60 * 69 / 129**2)
    assert report["parameters"]["beyond_vocabulary"] is True
    forbidden = settings("beyond_vocabulary=true", "forbid_original=true")
    assert fill(tmp_path, bert, *forbidden, "--sidecar", tmp_path / "sidecar.jsonl") == 0
    lines = (tmp_path / "filled.txt").read_text(encoding="utf-8").lower().splitlines()
    assert all("the zanzibar sat" not in line and not line.endswith("quagga") for line in lines)
    assert any("the quagga sat" in line for line in lines)
    assert fill(tmp_path, bert, *settings("beyond_vocabulary=true", "classes=match")) == 1
    assert "beyond_vocabulary=True draws words whose class nothing says" in capsys.readouterr().err
