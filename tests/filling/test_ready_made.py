"""Models that come with palimpsest stand in for a training of the same texts by the same settings, and for no other."""

import json
from pathlib import Path

import pytest
import yaml
from stage_commands import make_vocabulary, settings

from tasks import ready_made
from tasks.cli import main
from tasks.filling.fillers.settings import CausalLanguageModelFiller, MaskedLanguageModelFiller
from tasks.language_model.settings import TransformerPretraining
from tasks.records.stage_report import read_report
from tasks.tagger_training.settings import CrfTraining

SMALL = settings("architecture.layers=1", "architecture.heads=2", "architecture.width=8", "pretraining.epochs=1")


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """An empty folder of models that are ready made, and texts in the working folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ready_made, "FOLDER", tmp_path / "shelf")
    (tmp_path / "shelf").mkdir()
    Path("text.txt").write_text("the cat sat on the mat\na dog and a cat\n" * 20)
    Path("other.txt").write_text("the dog sat on the mat\n" * 20)
    return tmp_path / "shelf"


def content(folder):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def test_a_language_model_is_copied_where_text_and_settings_are_the_same(shelf):
    make_vocabulary("text.txt", "vocabulary.txt", "size=100")

    def pretrained(name, text="text.txt", *options):
        command = ["pretrain", "--vocabulary", "vocabulary.txt", "--input", text, "--valid", "text.txt", *SMALL]
        assert main([*command, "--output", name, "--report", f"{name}.json", *options]) == 0
        return read_report(f"{name}.json")["measured"]

    trained = pretrained("trained")
    ready_made.keep("trained", "trained.json", str(shelf / "pretrained"))
    copied = pretrained("copied")
    assert "ready_made_at" in copied
    assert copied["curve"] == trained["curve"]
    assert content("copied") == content("trained")
    for name, text, options in [("other", "other.txt", ()), ("slow", "text.txt", ("--set", "pretraining.seed=2"))]:
        assert "ready_made_at" not in pretrained(name, text, *options)
        assert content(name) != content("trained")


def test_what_comes_with_palimpsest_is_what_the_default_experiment_asks_for():
    document = yaml.safe_load((Path(__file__).parents[2] / "params.yaml").read_text(encoding="utf-8"))
    model = document["language_model"]
    asked = {
        "pretrained": TransformerPretraining(
            kind="transformer", architecture=model["architecture"], pretraining=model["pretraining"]
        ),
        "minilm": MaskedLanguageModelFiller(**document["fillers"]["minilm"]),
        "crf": CrfTraining(**document["taggers"]["crf"]),
        "smollm2_lora": CausalLanguageModelFiller(**document["fillers"]["smollm2_lora"]),
    }
    assert {path.parent.name for path in ready_made.FOLDER.glob("*/*.json")} == asked.keys()
    for name, of_default in asked.items():
        record = json.loads((ready_made.FOLDER / name / ready_made.RECORD).read_text(encoding="utf-8"))
        assert record["parameters"] == of_default.model_dump(mode="json")
        assert len(record["texts"]) == (2 if name in ("minilm", "smollm2_lora") else 3)


def test_the_default_language_model_need_not_be_trained(tmp_path, monkeypatch, capsys):
    """What makes its texts may not change, or everybody waits half an hour for a model of nearly the same ones."""
    root = Path(__file__).parents[2]
    monkeypatch.chdir(tmp_path)
    train = "tasks.language_model.training.train_transformer"
    monkeypatch.setattr(train, lambda *_, **__: pytest.fail("it is trained"))
    for source in ("params.yaml", "constraints.txt"):
        Path(source).symlink_to(root / source)
    for command in (
        "corpora --params params.yaml --name generic --output generic",
        "count-words --params params.yaml --input generic/train.txt --output word_counts.tsv",
        "vocabulary --params params.yaml --word-counts word_counts.tsv --output vocabulary.txt",
        "pretrain --params params.yaml --vocabulary vocabulary.txt --input generic/train.txt --valid generic/valid.txt "
        "--output pretrained --report pretrained.json",
    ):
        assert main(command.split()) == 0, capsys.readouterr().err
    assert read_report("pretrained.json")["measured"]["ready_made_at"]
