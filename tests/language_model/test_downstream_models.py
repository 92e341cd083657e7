"""Downstream models of every kind by the same commands; causal models of Hugging Face are tiny random ones."""

import math
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from command_results import measured, refusal, report
from pretrained_folder import SMALL, perplexity, write
from stage_commands import make_vocabulary, settings
from tiny_language_models import save_causal

from tasks.cli import main
from tasks.language_model.causal_lm.folder import load
from tasks.language_model.evaluation.sentence_scores import read_scores
from tasks.records.stage_report import read_report

ROOT = Path(__file__).parents[2]
PLAIN = ["The cat sat on the mat.", "Zoë saw a dog!", "bob"]
TEXTS = {
    "generic": ["the cat sat on the mat", "a dog and a cat", "the dog sat", "on the mat a dog sat"] * 30,
    "private": ["alice saw the cat", "bob sat on the dog", "the cat saw bob"] * 8,
    "masked": ["[MASK] saw the cat", "[PERSON] sat on the dog", "the cat saw [MASK]"] * 8,
    "valid": ["the cat saw the dog", "a cat sat on bob"],
    "plain": PLAIN,
}
PRECISE = [
    f"{stage}.{name}" for stage in ("pretraining", "adaptation") for name in ("precision=float32", "batch_tokens=64")
]
CAUSAL = settings(*(f"causal_lm.adaptation.{name}" for name in ("batch_tokens=64", "learning_rate=0.02", "epochs=6")))
FULL, ONCE = settings("causal_lm.adaptation.lora=null"), settings("causal_lm.adaptation.epochs=1")
ADAPTED = {
    "transformer": settings("adaptation.epochs=20", "adaptation.learning_rate=0.01", *PRECISE[2:]),
    "ngram": [],
    "causal_lm": CAUSAL,
    "causal_lm in full": [*CAUSAL, *FULL],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The texts, vocabulary.txt, a causal model as it comes (base), and a pretrained model and its report by kind."""
    folder = tmp_path_factory.mktemp("downstream")
    generic, *_ = [write(folder / f"{name}.txt", lines) for name, lines in TEXTS.items()]
    vocabulary = str(folder / "vocabulary.txt")
    make_vocabulary(generic, vocabulary, "size=100")
    causal = settings("kind=causal_lm", f"causal_lm.model={save_causal(folder / 'base', 'llama', tied=True)}")
    of_text = ["--input", generic, "--vocabulary", vocabulary]
    for kind, options in {
        "transformer": [*of_text, *SMALL, *settings("pretraining.epochs=2", *PRECISE[:2])],
        "ngram": [*of_text, *settings("kind=ngram")],
        "causal_lm": causal,
    }.items():
        written = ["--output", str(folder / kind), "--report", str(folder / f"{kind}.json")]
        assert main(["pretrain", *options, "--valid", str(folder / "private.txt"), *written]) == 0
    return folder


def adapting(model, text, output, *options):
    return ["adapt", "--model", model, "--input", text, "--output", output, *options]


def valid_losses(measured):
    return [point["valid_loss"] for point in measured["curve"] if "valid_loss" in point]


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("way", ADAPTED)
def test_adaptation_learns_the_text_and_no_file_or_message_holds_a_private_word(folder, tmp_path, capsys, way):
    kind, private = way.split()[0], folder / "private.txt"
    options = ["--valid", private, "--threads", "1", *ADAPTED[way]]
    document = report(*adapting(folder / kind, private, tmp_path / "new", *options, "--seed", "4"))
    found = document["measured"]
    before, *_, after = valid_losses(found)
    assert before == pytest.approx(valid_losses(read_report(folder / f"{kind}.json")["measured"])[-1], rel=1e-5)
    assert after < 0.6 * before
    epochs = {"transformer": 20, "ngram": 1}.get(kind, 6)
    assert (found["tokens"], found["words"], found["sentences"]) == (epochs * (13 + 3) * 8, 13 * 8, 24)
    assert document["seed"] == 4
    if kind == "causal_lm":
        whole = sum(weights.numel() for weights in load(tmp_path / "new").network.parameters())
        assert (found["trained_parameters"] == whole) == (way != kind)

    values = perplexity(tmp_path / "new", private, "--scores", str(tmp_path / "scores.tsv"))
    assert values["perplexity"] == pytest.approx(math.exp(after), rel=1e-3)
    assert values["perplexity_ci"][0] < values["perplexity"] < values["perplexity_ci"][1]
    assert values["words"] == 13 * 8
    assert values["oov_rate"] == pytest.approx(0 if kind == "causal_lm" else 5 / 13)  # alice, saw, bob, saw, bob
    read, signature = read_scores(tmp_path / "scores.tsv")
    assert signature == values["signature"]
    assert np.exp(-read.of("all").sum / read.of("all").count) == pytest.approx(values["perplexity"])

    shown, written = capsys.readouterr(), contents(tmp_path)
    assert "alice" not in shown.out + shown.err + str(document)
    assert not [name for name, content in written.items() if b"alice" in content]
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "new").rglob("*") if path.is_file()} == {0o600}
    for seed in ("4", "2"):
        report(*adapting(folder / kind, private, tmp_path / seed, *options, "--seed", seed))
        assert (contents(tmp_path / "new") == contents(tmp_path / seed)) == (seed == "4" or kind == "ngram")


@pytest.mark.parametrize(
    ("kind", "options"), [("ngram", []), ("causal_lm", [*CAUSAL, *FULL, *settings("causal_lm.adaptation.epochs=25")])]
)
def test_a_marker_is_a_token_that_baseline0_predicts_and_baseline1_does_not(folder, tmp_path, kind, options):
    """What a model keeps for markers is lost on plain text; a little of it is what every unseen token gets."""
    lost, masked = {}, folder / "masked.txt"
    for use in ("token", "ignore"):
        markers = ["--markers", use, "--valid", folder / "valid.txt"]
        assert measured(*adapting(folder / kind, masked, tmp_path / use, *markers, *options))["marker_use"] == use
        rules = [settings(f"markers={rule}") for rule in ("in_vocabulary", "renormalised")]
        plain, renormalised = (perplexity(tmp_path / use, folder / "private.txt", *rule) for rule in rules)
        lost[use] = plain["perplexity"] / renormalised["perplexity"]
    if kind == "ngram":
        assert lost["token"] > 1.2 > 1.1 > lost["ignore"] > 1
        return
    assert lost["token"] > 1.1 > 1.005 > lost["ignore"] >= 1
    causal, plain = load(tmp_path / "token"), load(folder / "causal_lm")
    assert causal.record.markers == ["[MASK]", "[PERSON]"]
    own = plain.network.get_input_embeddings().num_embeddings
    assert sorted(causal.pieces.markers.values()) == [own, own + 1]
    assert (causal.pieces.hash, causal.pieces.size) == (plain.pieces.hash, plain.pieces.size)  # one protocol for all


def test_a_mixture_of_ngram_models_is_better_than_either(folder, tmp_path):
    valid, ends = folder / "valid.txt", {}
    for weight in ("1", "0"):
        fixed = settings(f"ngram.generic_weight={weight}")
        measured(*adapting(folder / "ngram", folder / "private.txt", tmp_path / weight, *fixed))
        ends[weight] = perplexity(tmp_path / weight, valid)["perplexity"]
    assert ends["1"] == pytest.approx(perplexity(folder / "ngram", valid)["perplexity"])
    given = ["--valid", valid, "--cell", "method=oracle"]
    found = measured(*adapting(folder / "ngram", folder / "private.txt", tmp_path / "mixed", *given))
    mixed = perplexity(tmp_path / "mixed", valid)["perplexity"]
    assert mixed < min(ends.values())
    assert 0.05 < found["generic_weight"] < 0.95
    assert list(map(math.exp, valid_losses(found))) == pytest.approx([ends["1"], mixed], rel=1e-5)


def test_lines_of_the_text_among_the_validation_text_are_counted(folder, tmp_path):
    lines = map(str.upper, TEXTS["private"][:3])
    valid = write(tmp_path / "valid.txt", [*lines, "words of its own", "", "others"])
    found = report(*adapting(folder / "ngram", folder / "private.txt", tmp_path / "model", "--valid", valid))
    (warning,) = (each for each in found["warnings"] if "--valid" in each)
    assert warning.startswith("3 of 6 lines of --valid are ")


def test_a_model_as_it_comes_is_measured_and_adapted_without_a_pretraining(folder, tmp_path, monkeypatch):
    """By folder, and by ``package:NAME/FOLDER``: the numbers are those of the model folder that names it."""
    (tmp_path / "a_package").mkdir()
    (tmp_path / "a_package" / "__init__.py").touch()
    shutil.copytree(folder / "base", tmp_path / "a_package" / "base")
    monkeypatch.syspath_prepend(tmp_path)
    text, found = folder / "private.txt", []
    for number, model in enumerate((folder / "causal_lm", folder / "base", "package:a_package/base")):
        output = tmp_path / str(number)
        measured(*adapting(model, text, output, *ONCE))
        values = perplexity(model, text)
        found.append((values["perplexity"], values["signature"], contents(output)["adapter_model.safetensors"]))
        assert number == 0 or load(output).record.model == str(model)
    assert found[0] == found[1] == found[2]


def test_transformers_loads_what_was_adapted_from_python(folder, tmp_path):
    """Weights, markers and tokenizer are those that our own reader finds; ``adaptation`` says how it is trained."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    import palimpsest

    training = {"epochs": 2, "learning_rate": 0.02, "batch_tokens": 64}
    adapted = palimpsest.adapt(
        folder / "base", folder / "masked.txt", tmp_path / "adapted", markers="token", threads=1, adaptation=training
    )
    assert adapted.measured["epochs"] == 2
    ours = load(tmp_path / "adapted")
    theirs, tokenizer = (kind.from_pretrained(adapted.path) for kind in (AutoModelForCausalLM, AutoTokenizer))
    pieces = tokenizer("\n alice saw the cat\n", return_tensors="pt")["input_ids"]
    with torch.inference_mode():
        torch.testing.assert_close(theirs.eval()(pieces).logits, ours.network(pieces).logits)
        base = AutoModelForCausalLM.from_pretrained(folder / "base")(pieces).logits
        assert not torch.allclose(theirs(pieces).logits[..., : base.shape[-1]], base)
    assert tokenizer.convert_tokens_to_ids("[MASK]") == ours.pieces.markers["[MASK]"]
    assert palimpsest.perplexity(adapted, folder / "plain.txt", threads=1)["perplexity"] > 1


def test_a_loss_that_is_no_number_is_refused_in_one_line(folder, tmp_path):
    options = settings("adaptation.learning_rate=1e30", *PRECISE[2:])
    said = refusal(*adapting(folder / "transformer", folder / "private.txt", tmp_path / "model", *options))
    assert "training loss is not a number at step" in said
    assert not (tmp_path / "model").exists()


def test_a_text_without_a_word_leaves_the_earlier_model(folder, tmp_path):
    fixed, model = settings("ngram.generic_weight=0.5"), tmp_path / "model"
    measured(*adapting(folder / "ngram", folder / "private.txt", model, *fixed))
    before = contents(model)
    text = write(tmp_path / "text.txt", ["", "!"])
    assert "holds no word in 2 lines" in refusal(*adapting(folder / "ngram", text, model, *fixed))
    assert contents(model) == before
    with open(model / "adapted.arpa", "a", encoding="utf-8") as stream:
        stream.write("\n")
    said = refusal("perplexity", "--model", model, "--input", folder / "valid.txt")
    assert "adapted.arpa' is damaged or belongs to another model" in said


def test_refusals_of_causal_models(folder, tmp_path):
    text, base, params = folder / "plain.txt", tmp_path / "base", ROOT / "params.yaml"
    pretrain = ["pretrain", *settings("kind=causal_lm"), "--output", tmp_path / "model"]
    measured(*pretrain, *settings(f"causal_lm.model={save_causal(base, 'llama')}"))
    save_causal(base, "llama", seed=1)
    of_kind = "is of kind 'causal_lm', and language_model.kind is 'transformer'"
    for command, said in (
        (["perplexity", "--model", tmp_path / "model", "--input", text], "was made from model"),
        (adapting(folder / "causal_lm", text, tmp_path / "third", "--params", params), of_kind),
    ):
        assert said in refusal(*command)
