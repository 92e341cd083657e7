"""Fillers that are trained, tuned or copied: what is learned and held out, their folders, and what is refused."""

import re
import shutil
from pathlib import Path

import pytest
import torch
from fill_command import fill, refused, report, run, write
from huggingface_hub import constants
from tiny_causal_models import causal_tokenizer, random_llama
from tiny_masked_models import random_bert, save, word_piece_tokenizer
from transformers import AutoModelForMaskedLM, BertModel, PreTrainedTokenizerFast

from tasks.corpora.masked_text import unescape
from tasks.errors import ModelError
from tasks.filling.fillers.filler_folder import CausalFillerRecord
from tasks.filling.fillers.settings import MaskedLanguageModelTuning
from tasks.filling.fillers.tuning import tuning_text
from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel

TOKENIZER, CAUSAL_TOKENIZER = word_piece_tokenizer(), causal_tokenizer()


@pytest.fixture(scope="module")
def body(tmp_path_factory):
    """A masked language model without its head."""
    return save(BertModel(random_bert(TOKENIZER).config), TOKENIZER, tmp_path_factory.mktemp("body") / "body")


def weights_of(name):
    return AutoModelForMaskedLM.from_pretrained(name).state_dict()


def equal(one, other):
    return all(torch.equal(one[name], other[name]) for name in one)


def test_a_head_is_trained_and_fills_and_a_model_that_has_one_is_copied(folder, body, bert, monkeypatch):
    """Of a package's model the update is written, which is read with its base."""
    (folder / "a_package").mkdir()
    (folder / "a_package" / "__init__.py").touch()
    shutil.copytree(body, folder / "a_package" / "body")
    monkeypatch.syspath_prepend(folder)
    write("train.txt", ["red cat"] * 200)
    write("valid.txt", ["red cat"] * 2)
    write("text.txt", ["red [MASK]"])
    rates = ["train_head.learning_rate=0.02", "train_head.body_learning_rate=0.02"]
    training = ["train_head.steps=60", "train_head.batch_pieces=64", *rates]
    files = {"input": "train.txt", "valid": "valid.txt", "output": "filler", "report": "report.json"}
    assert run("train-filler", *training, model="package:a_package/body", **files) == 0
    assert (report()["measured"]["steps"], report()["measured"]["valid_top_1_accuracy"]) == (60, 1.0)
    assert Path("filler/update.safetensors").exists()
    assert fill("top_1", filler="filler")[0] == ["red cat"]
    assert run("train-filler", model=bert, output="copy") == 0
    assert equal(weights_of(bert), weights_of("copy"))


# Causal language models -------------------------------------------------------------------------------------------

SENTENCES = ["the red cat sat on the mat", "Tom ran to the red house", "Ann saw the dog in Paris"]
LORA = ["lora.steps=6", "lora.batch_sentences=4", "lora.learning_rate=0.05"]
BESIDE = "lora.merge=false"
"""The update in a folder of its own."""


@pytest.fixture
def texts(folder):
    write("train.txt", [*SENTENCES * 40, "a [MASK] line"])
    write("valid.txt", SENTENCES)
    write("text.txt", ["the [MASK] sat", "Ann [MASK] to [MASK]!"])
    return folder


def test_merged_weights_and_the_update_alone_fill_alike(texts, llama):
    files = {"model": llama, "input": "train.txt", "valid": "valid.txt"}
    assert run("train-filler", *LORA, output="merged", report="report.json", **files) == 0
    measured = report()["measured"]
    assert (measured["steps"], measured["lines_left_out"]) == (6, 1)
    assert measured["valid_loss"] < measured["untuned_valid_loss"]
    assert run("train-filler", *LORA, BESIDE, output="update", **files) == 0
    written = {file.name for file in Path("update").iterdir()}
    assert written >= {"adapter_model.safetensors", "causal_filler.json"}
    assert not any(name.endswith((".bin", ".pt", ".pkl")) for name in written)
    for method in ("sample", "free"):
        merged, _ = fill(method, filler="merged")
        assert fill(method, filler="update")[0] == merged
        assert merged[0].startswith("the ")


def test_an_adapter_finds_its_base_from_everywhere_and_moves_with_it(texts, monkeypatch, capsys):
    """The model ``models/llama`` and its adapter ``fillers/update``, made by their paths from this working folder."""
    text = texts / "text.txt"
    (texts / "work").mkdir()
    monkeypatch.chdir(texts / "work")
    save(random_llama(CAUSAL_TOKENIZER), CAUSAL_TOKENIZER, "models/llama")
    files = {"model": "models/llama", "input": "../train.txt", "output": "fillers/update"}
    assert run("train-filler", *LORA, BESIDE, **files) == 0
    here, _ = fill("top_1", filler="fillers/update", input=text)
    assert report()["inputs"].keys() == {str(text), "fillers/update", "models/llama"}
    for file in Path("fillers/update").iterdir():
        assert str(texts).encode() not in file.read_bytes()
    Path("..", "work").resolve().rename(texts / "moved")
    monkeypatch.chdir(texts)
    assert fill("top_1", filler="moved/fillers/update")[0] == here
    monkeypatch.chdir("moved")
    Path("models/llama").rename("elsewhere")
    message = "filler 'fillers/update' is an adapter, and its base, the folder 'models/llama', does not exist"
    assert message in refused(capsys, "fill", method="top_1", filler="fillers/update", input=text)


# Tuning on masked text --------------------------------------------------------------------------------------------

PAIRS = ["red cat", "dog ran", "tom sat", "paris mat"]
"""Each word tells the other one: after tuning every word can be guessed."""


def different(lines):
    """The lines with a number behind each, which the tiny models have no word for: no line is another one's repeat."""
    return [f"{line} {number}" for number, line in enumerate(lines)]


def tune(base, output, *settings, **options):
    """What was measured."""
    given = {"base": base, "input": "masked.txt", "output": output, "report": "report.json"} | options
    assert run("tune-filler", "minimum_sentences=10", *settings, **given) == 0
    return report()["measured"]


@pytest.fixture
def corpus(folder):
    """160 sentences without marker and 40 with one."""
    write("masked.txt", different([*PAIRS * 40, *["red [MASK]"] * 40]))
    write("allowed_words.txt", ["the"])


def test_unmasked_text_is_every_sentence_without_marker_that_is_not_held_out():
    numbered = [f"line {number}" if number % 2 else f"[MASK] {number}" for number in range(100)]
    # A line that occurs again and again is held out everywhere, and the model sees what its user wrote.
    masked = ["how are you ?"] * 50 + numbered + ["a [\\MASK] b"]
    settings = MaskedLanguageModelTuning(kind="masked_lm", minimum_sentences=1, held_out_share=0.1)
    text = tuning_text(masked, settings, list)
    held_out = {sentence.texts[0] for sentence in text.held_out}
    unmarked = [unescape(line) for line in masked if "[MASK]" not in line and line not in held_out]
    assert (text.lines, "how are you ?" in held_out) == (unmarked, True)
    assert text.measured["held_out_repeats"] >= 40


def test_a_masked_filler_learns_the_domain_and_leaves_its_base_and_a_second_round_goes_on(corpus, bert, folder, capsys):
    before = weights_of(bert)
    tuning = ["steps=100", "batch_pieces=64", "learning_rate=0.02", "masked_share=0.25"]
    first = tune(bert, "tiny_tuned", *tuning)
    assert (first["corpus_sentences"], first["held_out_sentences"]) == (200, 10)
    assert first["training_sentences"] + first["sentences_with_markers_left_out"] == 190
    assert first["held_out_loss"] < first["base_held_out_loss"] / 3
    assert first["base_held_out_top_1_accuracy"] < 1.0
    write("text.txt", ["red [MASK] 7", "[MASK] ran 8"])
    assert " ".join(fill("top_1", filler="tiny_tuned")[0]).lower() == "red cat 7 dog ran 8"
    assert equal(before, weights_of(bert))
    again = ["text=filled", "method.kind=top_1", "steps=3"]
    second = tune("tiny_tuned", "tiny_tuned_round_2", *again, allowed_words="allowed_words.txt")
    # The same words are guessed in every round, so a round begins where the one before has ended.
    assert second["held_out_words"] == first["held_out_words"]
    assert second["base_held_out_loss"] == pytest.approx(first["held_out_loss"], rel=1e-6)
    assert (second["training_sentences"], second["sentences_with_markers_left_out"]) == (190, 0)
    assert (second["markers"], second["fills"], second["distinct_fills"]) == (40, 40, 1)
    assert "40 places filled first" in capsys.readouterr().err
    # What was filled is private and gone.
    assert list((folder / ".palimpsest" / "fills").iterdir()) == []
    assert not re.search(r"\b(paris|tom)\b", Path("report.json").read_text(encoding="utf-8"))
    for output, seed in (("first", 1), ("again", 1), ("other", 2)):
        tune(bert, output, "steps=2", f"seed={seed}")
    assert equal(weights_of("first"), weights_of("again"))
    assert not equal(weights_of("first"), weights_of("other"))


def test_a_causal_filler_is_tuned_with_lora_round_after_round(folder, llama, capsys):
    write("masked.txt", different([*SENTENCES * 30, *["Ann [MASK]"] * 10]))
    lora = ["steps=25", "batch_sentences=6", "learning_rate=0.02", "dropout=0.0"]
    first = tune(llama, "llama_tuned", *lora)
    second = tune("llama_tuned", "llama_tuned_round_2", *lora, "merge=false")
    assert first["sentences_with_markers_left_out"] > 0
    assert first["held_out_loss"] < first["base_held_out_loss"] / 2
    assert second["base_held_out_loss"] == pytest.approx(first["held_out_loss"], rel=1e-5)
    assert second["held_out_masked_words"] == first["held_out_masked_words"]
    assert CausalFillerRecord.read("llama_tuned").instruction.startswith("Predict")
    write("text.txt", ["the [MASK] cat"])
    (line,), _ = fill("top_1", filler="llama_tuned_round_2")
    assert re.fullmatch(r"the \S+ cat", line)
    # An adapter alone is no base for another adapter alone.
    given = {"base": "llama_tuned_round_2", "input": "masked.txt"}
    assert "has only an update" in refused(capsys, "tune-filler", "minimum_sentences=10", "merge=false", **given)
    # Strings like markers would teach the model to write them.
    write("masked.txt", different([*["write [\\MASK] on the mat"] * 20, *["the red cat sat"] * 20]))
    found = tune(llama, "llama_tuned", "steps=2", "batch_sentences=2")
    assert found["lines_with_marker_strings"] == found["lines_left_out"] >= 18


TRAIN, TUNE = ("train-filler", {"model": "llama"}), ("tune-filler", {"base": "bert", "input": "masked.txt"})


@pytest.mark.parametrize(
    ("command", "settings", "files", "message"),
    [
        (TRAIN, ["lora={}"], {}, "lora needs generic text to train on; give --input"),
        (TRAIN, [], {"model": "gguf"}, "palimpsest train-filler --set gguf_file=model.gguf"),
        (TRAIN, ["lora.target_modules=[nope]"], {"input": "text.txt"}, "name the layers in target"),
        (TRAIN, ["lora={}"], {"input": "marked.txt"}, "no line without markers"),
        (TUNE, [], {"input": "signs.txt"}, "none of the 15 held-out sentences has a word to guess"),
        (TUNE, [], {"base": "body"}, "has no masked-LM head"),
        (TUNE, [], {"input": "marked.txt"}, "0 of the 38 sentences to train on have no marker"),
        (TUNE, ["kind=causal_lm"], {}, "kind is 'causal_lm', but base"),
        (TUNE, ["text=filled"], {}, "needs a method that fills"),
        (TUNE, ["text=filled", "method.kind=free"], {}, "'free' needs a causal language model"),
        (TUNE, ["text=filled", "method={kind: unigram, prior: counted}"], {}, "masked words, which tuning never reads"),
        (TUNE, [], {"output": "bert"}, "which is read; its content would be lost"),
    ],
)
def test_what_is_wrong_is_one_line_and_nothing_is_written(
    corpus, bert, llama, body, capsys, command, settings, files, message
):
    for name, place in (("bert", bert), ("llama", llama), ("body", body)):
        Path(name).symlink_to(place)
    Path("gguf").mkdir()
    Path("gguf/model.gguf").touch()
    write("text.txt", ["the red cat"])
    write("marked.txt", different(["the [MASK] cat"] * 40))
    write("signs.txt", different([", ."] * 300))
    name, given = command
    fewest = ["minimum_sentences=10"] * (command is TUNE)
    assert message in refused(capsys, name, *fewest, *settings, **given | files)


def test_a_filler_without_a_mask_token_is_one_line(folder, bert, capsys):
    shutil.copytree(bert, "filler")
    backend = TOKENIZER.backend_tokenizer
    PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="[UNK]", pad_token="[PAD]").save_pretrained("filler")
    write("text.txt", ["tom [MASK] mat"])
    error = refused(capsys, "fill", input="text.txt", method="top_1", filler="filler")
    assert "has no mask token, so it is no masked language model" in error
    assert " mat" not in error


def test_a_hub_that_cannot_be_reached_is_asked_once(monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(ModelError, match="neither a folder nor reachable on the hub"):
        MaskedLanguageModel.load("no-such-owner/no-such-model")
    assert constants.HF_HUB_OFFLINE
