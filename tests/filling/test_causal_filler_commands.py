"""Causal fillers through the commands: tuning, folders, what is recognised, and what is refused."""

import json
from pathlib import Path

import pytest
from peft import LoraConfig, get_peft_model
from stage_commands import settings
from tiny_causal_models import causal_tokenizer, random_llama, save
from transformers import AutoModelForCausalLM

from tasks.cli import main
from tasks.errors import ModelError
from tasks.filling.causal_lm.language_model import CausalLanguageModel
from tasks.filling.fillers.filler_folder import CausalFillerRecord

TOKENIZER = causal_tokenizer()
LINES = ["the red cat sat on the mat", "Tom ran to the red house", "Ann saw the dog in Paris"] * 40


@pytest.fixture
def texts(tmp_path):
    (tmp_path / "train.txt").write_text("\n".join([*LINES, "a [MASK] line"]) + "\n", encoding="utf-8")
    (tmp_path / "valid.txt").write_text("\n".join(LINES[:3]) + "\n", encoding="utf-8")
    (tmp_path / "masked.txt").write_text("the [MASK] sat\nAnn [MASK] to [MASK]!\n", encoding="utf-8")
    return tmp_path


def language_model():
    return CausalLanguageModel(random_llama(TOKENIZER), TOKENIZER, "tiny")


def train(folder, model, output, *options):
    arguments = ["--model", model, "--input", folder / "train.txt", "--valid", folder / "valid.txt"]
    return main(["train-filler", *map(str, arguments), "--output", str(folder / output), *map(str, options)])


def fill(folder, filler, *options):
    arguments = ["--input", folder / "masked.txt", "--output", folder / "filled.txt", "--filler", filler]
    status = main(["fill", *map(str, arguments), *map(str, options)])
    return status, (folder / "filled.txt").read_text(encoding="utf-8") if status == 0 else ""


LORA = settings("lora.steps=6", "lora.batch_sentences=4", "lora.learning_rate=0.05")
BESIDE = settings("lora.merge=false")
"""The update in a folder of its own."""


def test_merged_weights_and_the_update_alone_fill_alike(texts, llama):
    assert train(texts, llama, "merged", *LORA, "--report", texts / "report.json") == 0
    for _ in range(2):  # over itself
        assert train(texts, llama, "update", *LORA, *BESIDE) == 0
    measured = json.loads((texts / "report.json").read_text(encoding="utf-8"))["measured"]
    assert (measured["steps"], measured["lines_left_out"]) == (6, 1)
    assert measured["valid_loss"] < measured["untuned_valid_loss"]
    assert {file.name for file in (texts / "update").iterdir()} >= {"adapter_model.safetensors", "causal_filler.json"}
    assert not any(file.suffix in (".bin", ".pt", ".pkl") for file in (texts / "update").iterdir())
    assert CausalFillerRecord.read(texts / "update").base == llama
    for method in ("top_1", "sample", "free"):
        status, merged = fill(texts, texts / "merged", "--method", method)
        assert status == 0
        assert fill(texts, texts / "update", "--method", method) == (0, merged)
        assert merged.startswith("the ")
        assert merged.splitlines()[1].startswith("Ann ")


def adapter_next_to_its_base(folder, monkeypatch):
    """In ``work``: the model ``models/llama`` and its adapter ``fillers/update``, made by their paths from there."""
    work = folder / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    save(random_llama(TOKENIZER), TOKENIZER, work / "models" / "llama")
    options = [*LORA, *BESIDE, "--input", "../train.txt", "--output", "fillers/update"]
    assert main(["train-filler", "--model", "models/llama", *map(str, options)]) == 0
    return work


def test_an_adapter_finds_its_base_from_everywhere_and_moves_with_it(texts, monkeypatch):
    work = adapter_next_to_its_base(texts, monkeypatch)
    here = fill(texts, "fillers/update", "--method", "top_1", "--report", "first.json")
    assert here[0] == 0
    for file in (work / "fillers" / "update").iterdir():
        assert str(texts).encode() not in file.read_bytes()
    monkeypatch.chdir(texts)
    assert fill(texts, "work/fillers/update", "--method", "top_1") == here
    work.rename(texts / "moved")
    assert fill(texts, texts / "moved" / "fillers" / "update", "--method", "top_1") == here
    # The base is an input, so another one makes another fill.
    monkeypatch.chdir(texts / "moved")
    save(random_llama(TOKENIZER, seed=1), TOKENIZER, "models/llama")
    assert fill(texts, "fillers/update", "--method", "top_1", "--report", "second.json")[0] == 0
    first, second = (json.loads(Path(name).read_text())["inputs"] for name in ("first.json", "second.json"))
    assert set(first) == {str(texts / "masked.txt"), "fillers/update", "models/llama"}
    assert [name for name in first if first[name] != second[name]] == ["models/llama"]


def test_a_base_that_is_gone_is_named_with_its_adapter(texts, monkeypatch, capsys):
    work = adapter_next_to_its_base(texts, monkeypatch)
    (work / "models" / "llama").rename(work / "elsewhere")
    assert fill(texts, "fillers/update", "--method", "top_1")[0] == 1
    message = "filler 'fillers/update' is an adapter, and its base, the folder 'models/llama', does not exist"
    assert message in capsys.readouterr().err
    # An adapter that was not written here names its base by a path from the working folder.
    (work / "fillers" / "update" / "causal_filler.json").unlink()
    configuration = work / "fillers" / "update" / "adapter_config.json"
    content = json.loads(configuration.read_text(encoding="utf-8"))
    configuration.write_text(json.dumps(content | {"base_model_name_or_path": "elsewhere"}), encoding="utf-8")
    assert fill(texts, "fillers/update", "--method", "top_1")[0] == 0


TUNED = ["--model", "{model}", "--input", "{text}"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "{model}", *settings("lora={{}}")], "lora needs generic text to train on; give --input"),
        (["--model", "{model}", *settings("kind=masked_lm", "model={model}")], "is no masked language model"),
        (["--model", "{gguf}"], "palimpsest train-filler --set gguf_file=model.gguf"),
        ([*TUNED, *settings("lora.target_modules=[nope]")], "name the layers in target"),
        (
            [*TUNED, *settings("lora.target_modules=[q_proj, lm_head]")],
            "{model}': layer 'lm_head' has its weight in common with another layer (tied embeddings), so an update of "
            "it alone cannot be added to the weights; leave it out of target_modules",
        ),
        (["--model", "{model}", "--input", "{marked}", *settings("lora={{}}")], "no line without markers"),
    ],
)
def test_wrong_options_are_one_line(tmp_path, capsys, bert, llama, options, message):
    places = {"model": llama, "bert": bert}
    places |= {"gguf": tmp_path / "gguf", "text": tmp_path / "text.txt", "marked": tmp_path / "marked.txt"}
    places["gguf"].mkdir()
    (places["gguf"] / "model.gguf").touch()
    places["text"].write_text("the red cat\n", encoding="utf-8")
    places["marked"].write_text("the [MASK] cat\n", encoding="utf-8")
    options = [option.format(**places) for option in options]
    capsys.readouterr()  # the library's bars while the models were saved
    assert main(["train-filler", "--output", str(tmp_path / "out"), *options]) == 1
    error = capsys.readouterr().err
    assert message.format(**places) in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_an_update_of_a_shared_weight_from_elsewhere_is_refused(tmp_path, llama):
    configuration = LoraConfig(target_modules=["lm_head"], task_type="CAUSAL_LM")
    get_peft_model(AutoModelForCausalLM.from_pretrained(llama), configuration).save_pretrained(tmp_path / "a")
    with pytest.raises(ModelError, match="layer 'lm_head' has its weight in common"):
        CausalLanguageModel.load(str(tmp_path / "a"))
