"""A causal language model of Hugging Face's as downstream model, on tiny random ones: only the arithmetic is tested."""

import math
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from pretrained_folder import perplexity, write
from stage_commands import settings
from tiny_language_models import causal_tokenizer, save_causal

from tasks.cli import main
from tasks.language_model.causal_lm.folder import load
from tasks.language_model.causal_lm.scoring import CausalScorer
from tasks.records.stage_report import read_report

FULL = settings("causal_lm.adaptation.lora=null")
ONCE = settings("causal_lm.adaptation.epochs=1")
PLAIN = ["The cat sat on the mat.", "Zoë saw a dog!", "bob"]
PRIVATE = ["alice saw the cat", "bob sat on the dog", "the cat saw bob"] * 8
MASKED = ["[MASK] saw the cat", "[PERSON] sat on the dog", "the cat saw [MASK]"] * 8
TRAINING = [
    *settings(
        "causal_lm.adaptation.epochs=6",
        "causal_lm.adaptation.batch_tokens=64",
        "causal_lm.adaptation.learning_rate=0.02",
    ), "--threads", "1",
]  # fmt: skip


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """plain.txt, private.txt and masked.txt."""
    folder = tmp_path_factory.mktemp("texts")
    for name, lines in (("plain", PLAIN), ("private", PRIVATE), ("masked", MASKED)):
        write(folder / f"{name}.txt", lines)
    return folder


def pretrain(model: Path | str, output: Path, *options: str) -> int:
    kind = settings("kind=causal_lm", f"causal_lm.model={model}")
    return main(["pretrain", *kind, "--output", str(output), "--threads", "1", *options])


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory: pytest.TempPathFactory, texts: Path) -> Path:
    """A folder with random weights, ``base``, and a model folder that names it, ``pretrained``."""
    folder = tmp_path_factory.mktemp("causal")
    base = save_causal(folder / "base", "llama", tied=True)
    options = ["--valid", str(texts / "private.txt"), "--report", str(folder / "report.json")]
    assert pretrain(base, folder / "pretrained", *options) == 0
    return folder


def adapt(model: Path | str, text: Path, output: Path, *options: str) -> int:
    command = ["adapt", "--model", str(model), "--input", str(text), "--output", str(output)]
    return main([*command, *TRAINING, *options])


def test_a_word_has_the_probability_of_its_pieces_and_sentences_stand_alone(pretrained, texts):
    """Against the model's own loss on each line, encoded by its tokenizer in one go behind a line end."""
    scores, protocol = CausalScorer.load(pretrained / "pretrained").score_text(texts / "plain.txt")
    causal, _ = load(pretrained / "pretrained")
    tokenizer = causal_tokenizer()
    found = np.split(scores.log_probability, [7, 12])
    for sentence, own in zip(("the cat sat on the mat", "zoë saw a dog", "bob"), found, strict=True):
        pieces = torch.tensor([tokenizer(f"\n {sentence}\n")["input_ids"]])
        with torch.no_grad():
            loss = causal.model(input_ids=pieces, labels=pieces).loss.item() * (pieces.shape[1] - 1)
        assert len(own) == len(sentence.split()) + 1
        assert -own.sum() == pytest.approx(loss, rel=1e-5)
    assert scores.known.all()
    assert scores.marker_log_probability is None
    assert protocol.unknown_rate is None
    assert "unk=none|context=sentence,window=64,stride=32" in protocol.signature


@pytest.mark.parametrize("full", [False, True])
def test_adaptation_learns_the_text_and_the_folder_gives_back_what_was_trained(pretrained, texts, tmp_path, full):
    options = ["--valid", str(texts / "private.txt"), "--seed", "4", "--report", str(tmp_path / "a.json")]
    options += FULL if full else []
    assert adapt(pretrained / "pretrained", texts / "private.txt", tmp_path / "a", *options) == 0
    document = read_report(tmp_path / "a.json")
    before, after = (point["valid_loss"] for point in document["measured"]["curve"] if "valid_loss" in point)
    assert after < 0.6 * before
    again = perplexity(tmp_path / "a", texts / "private.txt")
    assert again["perplexity"] == pytest.approx(math.exp(after), rel=1e-3)
    assert read_report(pretrained / "report.json")["measured"]["curve"][0]["valid_loss"] == pytest.approx(before)
    measured = document["measured"]
    assert (measured["tokens"], measured["words"], measured["sentences"]) == (6 * (13 + 3) * 8, 13 * 8, 24)
    trained, whole = measured["trained_parameters"], sum(p.numel() for p in load(tmp_path / "a")[0].model.parameters())
    assert (trained == whole) == full
    assert document["seed"] == 4
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700
    files = [path for path in (tmp_path / "a").rglob("*") if path.is_file()]
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    weights = next(path for path in files if path.suffix == ".safetensors")
    assert weights.name == ("model.safetensors" if full else "adapter_model.safetensors")
    assert not any(b"alice" in path.read_bytes() for path in [*files, tmp_path / "a.json"])
    for seed in ("4", "2"):
        assert adapt(pretrained / "pretrained", texts / "private.txt", tmp_path / seed, *options, "--seed", seed) == 0
        other = tmp_path / seed / weights.relative_to(tmp_path / "a")
        assert (other.read_bytes() == weights.read_bytes()) == (seed == "4")


def test_a_marker_is_a_token_that_baseline0_predicts_and_baseline1_does_not(pretrained, texts, tmp_path):
    kept = {}
    more = [*settings("causal_lm.adaptation.epochs=25"), *FULL]
    for method, use in (("baseline0", "token"), ("baseline1", "ignore")):
        options = ["--markers", use, "--report", str(tmp_path / f"{method}.json"), *more]
        assert adapt(pretrained / "pretrained", texts / "masked.txt", tmp_path / method, *options) == 0
        found = [
            perplexity(tmp_path / method, texts / "private.txt", *settings(f"markers={rule}"))
            for rule in ("in_vocabulary", "renormalised")
        ]
        kept[method] = found[0]["perplexity"] / found[1]["perplexity"]
        assert read_report(tmp_path / f"{method}.json")["measured"]["marker_use"] == use
    # A marker is likely where one sentence in two begins with it.
    assert kept["baseline0"] > 1.1 > 1.005 > kept["baseline1"] >= 1
    causal, record = load(tmp_path / "baseline0")
    assert record.markers == ["[MASK]", "[PERSON]"]
    assert sorted(causal.pieces.markers.values()) == [len(causal_tokenizer()), len(causal_tokenizer()) + 1]
    plain, _ = load(pretrained / "pretrained")
    assert (causal.pieces.hash, causal.pieces.size) == (plain.pieces.hash, plain.pieces.size)  # one protocol for all


def test_refusals(pretrained, texts, tmp_path, capsys):
    text, base = texts / "plain.txt", tmp_path / "base"
    assert adapt(pretrained / "pretrained", text, tmp_path / "first", *ONCE) == 0
    assert adapt(tmp_path / "first", text, tmp_path / "second", *ONCE, *FULL) == 0
    assert pretrain(save_causal(base, "llama"), tmp_path / "model") == 0
    save_causal(base, "llama", seed=1)
    perplexity_of_another = ["perplexity", "--model", str(tmp_path / "model"), "--input", str(text)]
    for refused, said in (
        (lambda: adapt(tmp_path / "first", text, tmp_path / "third"), "has an update of low rank already"),
        (lambda: main(perplexity_of_another), "was made from model"),
        (lambda: pretrain(tmp_path / "nowhere", tmp_path / "m"), "does not exist; give a folder, a hub name or"),
        (lambda: main(["pretrain", *settings("kind=causal_lm"), "--output", "m"]), "causal_lm: is missing"),
    ):
        capsys.readouterr()
        assert refused() == 1
        assert said in capsys.readouterr().err


def test_a_model_as_it_comes_is_measured_and_adapted_without_a_pretraining(pretrained, texts, tmp_path, monkeypatch):
    """By folder, and by ``package:NAME/FOLDER``: the numbers are those of the model folder that names it."""
    (tmp_path / "a_package").mkdir()
    (tmp_path / "a_package" / "__init__.py").touch()
    shutil.copytree(pretrained / "base", tmp_path / "a_package" / "base")
    monkeypatch.syspath_prepend(tmp_path)
    text = texts / "private.txt"
    expected = perplexity(pretrained / "pretrained", text)
    assert adapt(pretrained / "pretrained", text, tmp_path / "adapted", *ONCE) == 0
    for name, model in (("of_folder", str(pretrained / "base")), ("of_package", "package:a_package/base")):
        measured = perplexity(model, text)
        assert (measured["perplexity"], measured["signature"]) == (expected["perplexity"], expected["signature"])
        assert adapt(model, text, tmp_path / name, *ONCE) == 0
        first, other = (tmp_path / each / "update" / "adapter_model.safetensors" for each in ("adapted", name))
        assert first.read_bytes() == other.read_bytes()
        assert load(tmp_path / name)[1].model == model


@pytest.mark.parametrize(
    ("markers", "more"),
    [("token", {}), ("none", {"merged": False, "causal_lm": {"adaptation": {"lora": None}}})],
    ids=str,
)
def test_transformers_loads_what_was_adapted_from_python(pretrained, texts, tmp_path, markers, more):
    """Weights, markers and tokenizer are those that our own reader finds; ``adaptation`` says how it is trained."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    import palimpsest

    training = {"epochs": 2, "learning_rate": 0.02, "batch_tokens": 64}
    text = texts / ("masked.txt" if markers == "token" else "private.txt")
    adapted = palimpsest.adapt(
        pretrained / "base", text, tmp_path / "adapted", markers=markers, threads=1, adaptation=training, **more
    )
    assert adapted.measured["epochs"] == 2

    ours, _ = load(tmp_path / "adapted")
    theirs, tokenizer = (kind.from_pretrained(adapted.path) for kind in (AutoModelForCausalLM, AutoTokenizer))
    pieces = tokenizer("\n alice saw the cat\n", return_tensors="pt")["input_ids"]
    with torch.inference_mode():
        torch.testing.assert_close(theirs.eval()(pieces).logits, ours.model(pieces).logits)
        base = AutoModelForCausalLM.from_pretrained(pretrained / "base")(pieces).logits
        assert not torch.allclose(theirs(pieces).logits[..., : base.shape[-1]], base)
    if markers == "token":
        assert tokenizer.convert_tokens_to_ids("[MASK]") == ours.pieces.markers["[MASK]"]
    assert palimpsest.perplexity(adapted, texts / "plain.txt", threads=1)["perplexity"] > 1
