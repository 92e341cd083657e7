"""What comes with palimpsest: a filler and its averages, word counts, and models that need not be trained."""

import json
from pathlib import Path

import numpy as np
import pytest
from changed_parameters import parameters
from fill_command import report, run, write
from stage_commands import make_vocabulary

import palimpsest
from tasks import ready_made
from tasks.corpora.words import words_of
from tasks.filling.fillers.settings import CausalLanguageModelFiller, MaskedLanguageModelFiller
from tasks.filling.masked_lm import weighing
from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel
from tasks.filling.settings import SHIPPED_FILLER
from tasks.language_model.settings import TransformerPretraining
from tasks.model_source import locate_model


@pytest.mark.parametrize("method", ["top_k", "log_linear", "unigram", "surrogate"])
def test_every_method_fills_with_what_ships(method, folder, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    first, second = palimpsest.fill(["We went to [MASK] in May.", "It is a [MASK], you know."], method)
    assert first.startswith("We went to ")
    assert first.endswith(" in May.")
    assert len(words_of(first)) == 6
    assert second.startswith(("It is a ", "It is an "))


def test_the_shipped_filler_knows_words_is_small_and_has_its_averages():
    model = MaskedLanguageModel.load(SHIPPED_FILLER)
    (pieces,) = model.encode([("Paris is the capital of ", ".")])
    best = model.logits([model.ask((), 0, pieces, pieces.index(model.mask_entry))]).topk(20, dim=1).indices
    assert "france" in model.tokenizer.convert_ids_to_tokens(best[0].tolist())
    assert Path(locate_model(SHIPPED_FILLER), "update.safetensors").stat().st_size < 15_000_000
    known = json.loads(Path(weighing.__file__).with_name("weighing.json").read_text())["averages"]
    assert known.keys() <= model.tokenizer.get_vocab().keys()
    assert np.exp(list(known.values())).sum() == pytest.approx(1, abs=0.02)
    found, _ = weighing.shipped_averages(["cat", "no-such-word"])
    assert found.tolist() == [known["cat"], float(np.median(list(known.values())))]


def content(folder):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def test_a_language_model_is_copied_where_text_and_settings_are_the_same(folder, monkeypatch):
    monkeypatch.setattr(ready_made, "FOLDER", folder / "shelf")
    (folder / "shelf").mkdir()
    write("text.txt", ["the cat sat on the mat", "a dog and a cat"] * 20)
    write("other.txt", ["the dog sat on the mat"] * 20)
    make_vocabulary("text.txt", "vocabulary.txt", "size=100")

    def pretrained(name, text="text.txt", *settings):
        small = ["architecture.layers=1", "architecture.heads=2", "architecture.width=8", "pretraining.epochs=1"]
        files = {"vocabulary": "vocabulary.txt", "input": text, "valid": "text.txt", "output": name}
        assert run("pretrain", *small, *settings, report=f"{name}.json", **files) == 0
        return report(f"{name}.json")["measured"]

    trained = pretrained("trained")
    ready_made.keep("trained", "trained.json", str(folder / "shelf" / "pretrained"))
    copied = pretrained("copied")
    assert "ready_made_at" in copied
    assert copied["curve"] == trained["curve"]
    assert content("copied") == content("trained")
    for name, text, *settings in [("other", "other.txt"), ("slow", "text.txt", "pretraining.seed=2")]:
        assert "ready_made_at" not in pretrained(name, text, *settings)
        assert content(name) != content("trained")


@pytest.fixture
def asked():
    """What the default experiment asks for, by name."""
    document = parameters()
    model = document["language_model"]
    transformer = {name: model[name] for name in ("architecture", "pretraining")}
    return {
        "pretrained": TransformerPretraining(kind="transformer", **transformer),
        "minilm": MaskedLanguageModelFiller(**document["fillers"]["minilm"]),
        "smollm2_lora": CausalLanguageModelFiller(**document["fillers"]["smollm2_lora"]),
    }


def test_what_comes_with_palimpsest_is_what_the_default_experiment_asks_for(asked):
    assert {path.parent.name for path in ready_made.FOLDER.glob("*/*.json")} == asked.keys()
    for name, of_default in asked.items():
        record = json.loads((ready_made.FOLDER / name / ready_made.RECORD).read_text(encoding="utf-8"))
        assert record["parameters"] == of_default.model_dump(mode="json")
        assert len(record["texts"]) == (3 if name == "pretrained" else 2)


@pytest.mark.slow
def test_what_comes_with_palimpsest_is_of_the_texts_of_the_default_experiment(folder, asked):
    """What makes the texts may not change, or everybody waits half an hour for a model of nearly the same ones."""
    for source in ("params.yaml", "constraints.txt"):
        Path(source).symlink_to(Path(__file__).parents[2] / source)
    train, valid, vocabulary = "generic/train.txt", "generic/valid.txt", "vocabulary.txt"
    assert run("corpora", params="params.yaml", name="generic", output="generic") == 0
    assert run("count-words", params="params.yaml", input=train, output="counts.tsv") == 0
    assert run("vocabulary", params="params.yaml", word_counts="counts.tsv", output=vocabulary) == 0
    assert ready_made.ready_made("pretrain", asked["pretrained"], [train, valid, vocabulary])
