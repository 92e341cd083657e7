import json
import weakref

import numpy as np
import torch
from tiny_masked_models import random_bert, word_piece_tokenizer

from tasks.cli import main
from tasks.filling.masked_lm.candidate_words import candidate_words
from tasks.filling.masked_lm.marker_scores import BatchHalving
from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel
from tasks.filling.masked_lm.places import OpenPlace, candidate_log_probabilities

TOKENIZER = word_piece_tokenizer()


def doubled(most, sizes):
    """Work that has memory for so many items, and notes the size of every batch that it finishes."""

    def work(items):
        if len(items) > most:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        sizes.append(len(items))
        return [2 * item for item in items]

    return work


def test_a_batch_is_halved_until_it_fits_and_the_next_is_not_tried_whole():
    sizes = []
    halving = BatchHalving("tiny")
    parts = halving.run(range(16), doubled(5, sizes), cells=len)
    assert [item for part in parts for item in part] == list(range(0, 32, 2))
    # 16 and 8 do not fit; once 8 did not, halves of 8 are not tried as 8 again.
    assert sizes == [4, 4, 4, 4]
    assert halving.counts == {"halved_batches": 2}
    parts = halving.run(range(7), doubled(5, sizes), cells=len)
    assert [item for part in parts for item in part] == list(range(0, 14, 2))
    assert halving.counts == {"halved_batches": 2}


def fill(folder, filler, name, *options):
    lines = ["the [MASK] sat", "[MASK] ran on the red mat", "tom's [MASK]-re [MASK] .", "a", "[MASK]"] * 12
    (folder / "masked.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    output = ["--input", folder / "masked.txt", "--output", folder / f"{name}.txt", "--report", folder / f"{name}.json"]
    return main(["fill", *map(str, output), "--filler", filler, "--method", "sample", *options])


def little_memory(monkeypatch, most_pieces):
    """Let models run out of memory on batches of more pieces, padding included."""
    prepared = MaskedLanguageModel.prepared

    def refuse(_module, _arguments, options):
        if options["input_ids"].numel() > most_pieces:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    def with_little_memory(self):
        prepared(self)
        self.model.register_forward_pre_hook(refuse, with_kwargs=True)
        return self

    monkeypatch.setattr(MaskedLanguageModel, "prepared", with_little_memory)


def memory_for_scores(monkeypatch, most_markers):
    """Let models run out of memory where the vocabulary scores of more markers are there at the same time."""
    logits = MaskedLanguageModel.logits
    there = weakref.WeakSet()

    def with_little_memory(self, windows):
        found = logits(self, windows)
        if len(found) + sum(len(scores) for scores in there) > most_markers:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        there.add(found)
        return found

    monkeypatch.setattr(MaskedLanguageModel, "logits", with_little_memory)


def test_the_scores_of_one_part_are_gone_before_the_next(tmp_path, bert, monkeypatch):
    assert fill(tmp_path, bert, "plenty") == 0
    memory_for_scores(monkeypatch, 12)
    assert fill(tmp_path, bert, "little") == 0
    assert (tmp_path / "little.txt").read_bytes() == (tmp_path / "plenty.txt").read_bytes()
    assert json.loads((tmp_path / "little.json").read_text())["measured"]["halved_batches"] > 0


def test_a_table_of_candidates_is_made_with_little_memory(monkeypatch):
    model = MaskedLanguageModel(random_bert(TOKENIZER), TOKENIZER, "tiny").prepared()
    candidates = candidate_words(TOKENIZER, name="tiny")
    places = [OpenPlace(("the ", f" sat on the {word}"), 0) for word in ("mat", "red mat", "dog .")] * 6
    given = (candidates, np.ones(len(candidates), dtype=bool), places)
    plenty = candidate_log_probabilities(model, *given)
    memory_for_scores(monkeypatch, 12)
    little = candidate_log_probabilities(model, *given)
    assert np.allclose(little, plenty, atol=1e-5)  # sums of another batch may be rounded otherwise
    assert model.halving.counts["halved_batches"] > 0


def test_a_fill_without_memory_for_one_sentence_is_one_line(tmp_path, bert, monkeypatch, capsys):
    little_memory(monkeypatch, 2)
    assert fill(tmp_path, bert, "none") == 75
    error = capsys.readouterr().err
    assert "too little memory for a single sentence" in error
    assert error.count("\n") == 1
    assert not (tmp_path / "none.txt").exists()
