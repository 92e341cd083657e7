import json

import torch

from tasks.cli import main
from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel


def test_little_memory_changes_no_fill_and_none_for_one_sentence_is_one_line(tmp_path, bert, monkeypatch, capsys):
    lines = ["the [MASK] sat", "[MASK] ran on the red mat", "tom's [MASK]-re [MASK] .", "a", "[MASK]"] * 12
    (tmp_path / "masked.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    prepared = MaskedLanguageModel.prepared

    def fill(name, most_pieces):
        """With a model that runs out of memory on batches of more pieces, padding included."""

        def refuse(_module, _arguments, options):
            if options["input_ids"].numel() > most_pieces:
                raise torch.cuda.OutOfMemoryError("CUDA out of memory")

        def with_little_memory(self):
            prepared(self)
            self.model.register_forward_pre_hook(refuse, with_kwargs=True)
            return self

        monkeypatch.setattr(MaskedLanguageModel, "prepared", with_little_memory)
        files = ["--input", tmp_path / "masked.txt", "--output", tmp_path / name, "--report", tmp_path / f"{name}.json"]
        return main(["fill", *map(str, files), "--filler", bert, "--method", "sample"])

    assert fill("plenty", 10**6) == fill("little", 60) == 0
    assert (tmp_path / "little").read_bytes() == (tmp_path / "plenty").read_bytes()
    assert json.loads((tmp_path / "little.json").read_text())["measured"]["halved_batches"] > 0
    capsys.readouterr()
    assert fill("none", 2) == 75
    error = capsys.readouterr().err
    assert "too little memory for a single sentence" in error
    assert error.count("\n") == 1
    assert not (tmp_path / "none").exists()
