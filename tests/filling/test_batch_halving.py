import torch

from tasks.cli import main
from tasks.filling.masked_lm.marker_scores import BatchHalving
from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel


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


def test_a_fill_without_memory_for_one_sentence_is_one_line(tmp_path, bert, monkeypatch, capsys):
    little_memory(monkeypatch, 2)
    assert fill(tmp_path, bert, "none") == 75
    error = capsys.readouterr().err
    assert "too little memory for a single sentence" in error
    assert error.count("\n") == 1
    assert not (tmp_path / "none.txt").exists()
