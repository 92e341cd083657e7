"""Fine-tuning fillers on masked text: what is trained on, what is held out, and what the tuned filler has learned."""

import json
import re

import pytest
import torch
from stage_commands import settings as keys
from tiny_causal_models import causal_tokenizer, random_llama
from tiny_masked_models import random_bert, save, word_piece_tokenizer
from transformers import AutoModelForMaskedLM, BertModel

from tasks.cli import main
from tasks.errors import CorpusError
from tasks.filling.fillers.filler_folder import CausalFillerRecord
from tasks.filling.fillers.settings import CausalLanguageModelTuning, MaskedLanguageModelTuning
from tasks.filling.fillers.tuning import tuning_text

TOKENIZER = word_piece_tokenizer()
PAIRS = ["red cat", "dog ran", "tom sat", "paris mat"]
"""Each word tells the other one: after tuning every word can be guessed."""
TUNING = [*keys("steps=160", "batch_pieces=64", "learning_rate=0.02", "masked_share=0.25")]


def settings(**values):
    return MaskedLanguageModelTuning(kind="masked_lm", **{"minimum_sentences": 1, **values})


def no_fill():
    raise AssertionError("nothing is to be filled")


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    """160 sentences without marker and 40 with one; the tests run in its folder."""
    monkeypatch.chdir(tmp_path)
    write_different(tmp_path / "masked.txt", [*PAIRS * 40, *["red [MASK]"] * 40])
    (tmp_path / "allowed_words.txt").write_text("the\n", encoding="utf-8")
    return tmp_path


def different(lines):
    """The lines with a number behind each, which the tiny models have no word for: no line is another one's repeat."""
    return [f"{line} {number}" for number, line in enumerate(lines)]


def write_different(path, lines):
    path.write_text("\n".join(different(lines)) + "\n", encoding="utf-8")


def tune(base, output, *options, text="masked.txt"):
    arguments = ["--base", base, "--input", text, "--output", output, *keys("minimum_sentences=10"), *options]
    return main(["tune-filler", *map(str, arguments)])


def measured(path):
    return json.loads(path.read_text(encoding="utf-8"))["measured"]


def test_unmasked_text_is_every_sentence_without_marker_that_is_not_held_out():
    masked = [f"line {number}" if number % 2 else f"[MASK] {number}" for number in range(100)] + ["", "a [\\MASK] b"]
    text, seed, more = (
        tuning_text(masked, settings(**{"held_out_share": 0.2} | changes), no_fill)
        for changes in ({}, {"seed": 7}, {"held_out_share": 0.4})
    )
    assert text.measured == {
        "corpus_sentences": 101,
        "held_out_sentences": 20,
        "held_out_repeats": 0,
        "training_sentences": len(text.lines),
        "sentences_with_markers_left_out": 81 - len(text.lines),
    }
    held_out, of_seed, of_more = ({sentence.number for sentence in each.held_out} for each in (text, seed, more))
    assert len(held_out) == 20
    assert held_out == of_seed < of_more  # it depends on the corpus alone
    # A string of the user's that looks like a marker is none, and the model sees it as it was written.
    unmarked = {number: line for number, line in enumerate(masked, start=1) if line and "[MASK]" not in line}
    unmarked[102] = "a [MASK] b"
    assert text.lines == [line for number, line in unmarked.items() if number not in held_out]
    assert any(sentence.slots for sentence in text.held_out)


def test_too_few_sentences_are_counted_and_the_remedy_named():
    for masked, values, message in [
        (different(["[MASK] a"] * 40), {}, r"0 of the 38 sentences to train on have no marker.*text: filled"),
        (["a"] * 40, {}, r"0 of the 0 .* minimum_sentences=1 \(38 more are equal to sentences that are held out\)"),
    ]:
        with pytest.raises(CorpusError, match=message):
            tuning_text(masked, settings(**values), no_fill)


def test_the_same_seed_tunes_the_same_filler(corpus, bert):
    for output, seed in (("first", 1), ("again", 1), ("other", 2)):
        assert tune(bert, output, *keys("steps=4", f"seed={seed}")) == 0
    first, again, other = (
        AutoModelForMaskedLM.from_pretrained(corpus / name).state_dict() for name in ("first", "again", "other")
    )
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not all(torch.equal(first[name], other[name]) for name in first)


def test_a_causal_filler_is_tuned_with_lora_round_after_round(tmp_path, monkeypatch, llama):
    monkeypatch.chdir(tmp_path)
    lines = ["the red cat sat on the mat", "Tom ran to the red house", "Ann saw the dog in Paris"] * 30
    write_different(tmp_path / "masked.txt", [*lines, *["Ann [MASK]"] * 10])
    lora = [*keys("steps=25", "batch_sentences=6", "learning_rate=0.02", "dropout=0.0")]
    assert tune(llama, "llama_tuned", *lora, "--report", "1.json") == 0
    assert tune("llama_tuned", "llama_tuned_round_2", *lora, *keys("merge=false"), "--report", "2.json") == 0
    first, second = measured(tmp_path / "1.json"), measured(tmp_path / "2.json")
    assert first["sentences_with_markers_left_out"] > 0
    assert first["held_out_loss"] < first["base_held_out_loss"] / 2
    assert second["base_held_out_loss"] == pytest.approx(first["held_out_loss"], rel=1e-5)
    assert second["held_out_masked_words"] == first["held_out_masked_words"]
    assert first["tuned_parameters"] < first["parameters"]
    # The base's own, whether the update is added to them or not.
    weights = random_llama(causal_tokenizer()).parameters()
    assert first["parameters"] == second["parameters"] == sum(weight.numel() for weight in weights)
    assert CausalFillerRecord.read("llama_tuned").instruction.startswith("Predict")
    assert CausalFillerRecord.read("llama_tuned_round_2").base == "llama_tuned"
    (tmp_path / "ask.txt").write_text("the [MASK] cat\n", encoding="utf-8")
    fill = ["--input", "ask.txt", "--output", "answer.txt", "--method", "top_1", "--filler", "llama_tuned_round_2"]
    assert main(["fill", *fill]) == 0
    assert re.fullmatch(r"the \S+ cat\n", (tmp_path / "answer.txt").read_text(encoding="utf-8"))


def test_a_causal_filler_is_not_tuned_on_strings_like_markers_and_says_so(tmp_path, monkeypatch, llama, capsys):
    monkeypatch.chdir(tmp_path)
    lines = different([*["write [\\MASK] on the mat"] * 20, *["the red cat sat"] * 20])
    (tmp_path / "masked.txt").write_text("\n".join(lines), encoding="utf-8")
    lora = [*keys("steps=20", "batch_sentences=2")]
    assert tune(llama, "llama_tuned", *lora, "--report", "report.json") == 0
    found = measured(tmp_path / "report.json")
    assert found["training_sentences"] == 38
    assert found["lines_with_marker_strings"] == found["lines_left_out"] >= 18
    (tmp_path / "masked.txt").write_text("\n".join(lines[:20]), encoding="utf-8")
    assert tune(llama, "never", *lora) == 1
    assert "19 of 19 lines have markers, or strings that look like them" in capsys.readouterr().err


def test_a_line_that_stands_everywhere_is_held_out_everywhere():
    text = tuning_text([*["how are you ?"] * 50, *different(["a"] * 50)], settings(held_out_share=0.1), no_fill)
    assert "how are you ?" in {sentence.texts[0] for sentence in text.held_out}
    assert "how are you ?" not in text.lines
    assert text.measured["held_out_repeats"] >= 40
    assert text.measured["training_sentences"] == len(text.lines)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--base", "{base}", "--input", "signs.txt"], "none of the 15 held-out sentences has a word to guess"),
        (["--base", "./absent"], "'./absent' does not exist"),
        (["--base", "{body}"], "has no masked-LM head"),
        (["--base", "{base}", *keys("kind=causal_lm")], "kind is 'causal_lm', but base"),
        (["--base", "{llama}", *keys("target_modules=[nope]")], "name the layers in target_modules"),
        (["--base", "{base}", *keys("text=filled")], "needs a method that fills"),
        (["--base", "{base}", *keys("method.kind=top_1")], "text 'unmasked' fills nothing"),
        (["--base", "{base}", *keys("learning_rate=1.0e+30")], "loss is not a number"),
        (["--base", "{base}", "--output", "{base}"], "which is read; its content would be lost"),
    ],
)
def test_what_is_wrong_is_one_line_and_nothing_is_written(corpus, bert, llama, capsys, options, message):
    places = {"base": bert, "llama": llama}
    places["body"] = save(BertModel(random_bert(TOKENIZER).config), TOKENIZER, corpus / "body")
    write_different(corpus / "signs.txt", [", ."] * 300)
    given = ["--input", "masked.txt", "--output", "out", *keys("minimum_sentences=10")]
    capsys.readouterr()  # what saving the models has shown
    assert main(["tune-filler", *given, *[option.format(**places) for option in options]]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (corpus / "out").exists()


def test_methods_that_tuning_can_never_run_are_refused_with_the_parameters():
    for method, message in [
        ({"kind": "unigram", "prior": "counted"}, "counts the masked words, which tuning never reads; take prior: dom"),
        ({"kind": "surrogate", "consistent_within": "document"}, "needs the originals and their documents"),
        ({"kind": "top_k", "copies": 2}, r"method\.copies: a filler is tuned on one fill of each sentence"),
        ({"kind": "free"}, "'free' needs a causal language model, and kind is 'masked_lm'; take top_1"),
    ]:
        with pytest.raises(ValueError, match=message):
            settings(text="filled", method=method)
    CausalLanguageModelTuning(kind="causal_lm", text="filled", method={"kind": "free"})


def test_an_adapter_alone_is_no_base_for_another_adapter_alone(tmp_path, monkeypatch, llama, capsys):
    monkeypatch.chdir(tmp_path)
    write_different(tmp_path / "masked.txt", ["the red cat"] * 40)
    lora = [*keys("steps=2", "batch_sentences=2")]
    assert tune(llama, "first", *lora, *keys("merge=false")) == 0
    assert tune("first", "merged", *lora) == 0
    assert tune("first", "second", *lora, *keys("merge=false")) == 1
    assert "has only an update" in capsys.readouterr().err


def test_a_masked_filler_learns_the_domain_and_leaves_its_base_and_a_second_round_goes_on(corpus, bert, capsys):
    before = AutoModelForMaskedLM.from_pretrained(bert).state_dict()
    assert tune(bert, "tiny_tuned", *TUNING, "--report", "1.json") == 0
    first = measured(corpus / "1.json")
    assert (first["corpus_sentences"], first["held_out_sentences"]) == (200, 10)
    assert first["training_sentences"] + first["sentences_with_markers_left_out"] == 190
    assert first["held_out_loss"] < first["base_held_out_loss"] / 3
    assert first["base_held_out_top_1_accuracy"] < 1.0
    (corpus / "ask.txt").write_text("red [MASK] 7\n[MASK] ran 8\n", encoding="utf-8")
    fill = ["--input", "ask.txt", "--output", "answer.txt", "--filler", "tiny_tuned", "--method", "top_1"]
    assert main(["fill", *fill]) == 0
    assert (corpus / "answer.txt").read_text(encoding="utf-8").lower() == "red cat 7\ndog ran 8\n"
    after = AutoModelForMaskedLM.from_pretrained(bert).state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    options = [*keys("text=filled", "method.kind=top_1"), "--allowed-words", "allowed_words.txt", "--report", "2.json"]
    assert tune("tiny_tuned", "tiny_tuned_round_2", *options, *keys("steps=3")) == 0
    second = measured(corpus / "2.json")
    # The same words are guessed in every round, so a round begins where the one before has ended.
    assert second["held_out_words"] == first["held_out_words"]
    assert second["base_held_out_loss"] == pytest.approx(first["held_out_loss"], rel=1e-6)
    assert (second["training_sentences"], second["sentences_with_markers_left_out"]) == (190, 0)
    assert (second["markers"], second["fills"], second["distinct_fills"]) == (40, 40, 1)
    assert "40 places filled first" in capsys.readouterr().err
    # What was filled is private and gone.
    assert list((corpus / ".palimpsest" / "fills").iterdir()) == []
    assert not re.search(r"\b(paris|tom)\b", (corpus / "2.json").read_text(encoding="utf-8"))
