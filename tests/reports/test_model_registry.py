import json
import math
import sqlite3
from pathlib import Path
from types import SimpleNamespace

import pytest
import tracked_state
import yaml
from mlflow.exceptions import MlflowException

from tasks.cli import main
from tasks.reports.cell import Cell
from tasks.reports.stage_report import content_hash
from tasks.reports.tracking.model_registry import CHAMPION, MODEL_TAG, TrainedModel, champions, register_models
from tasks.reports.tracking.settings import TrackingSettings

TOP_K = Cell("chat", "allow_list", "top_k", "minilm", 1)
BASELINE1 = Cell("chat", "allow_list", "baseline1", None, 1)
ORACLE = Cell("chat", method="oracle", seed=1)
WORDS = ("a", "b", "c", "d")


def trained(cell, perplexity, folder="models/adapted"):
    return TrainedModel(cell, f"{cell.path}#0", Path(folder, cell.path), "0" * 64, perplexity)


def test_the_champion_is_the_best_on_validation_text_of_each_data_set():
    mail = Cell("mail", "allow_list", "top_k", "minilm", 1)
    best = champions([trained(BASELINE1, 240.0), trained(TOP_K, 230.0), trained(mail, 99.0)])
    assert {dataset: model.cell for dataset, model in best.items()} == {"chat": TOP_K, "mail": mail}


def test_a_model_of_raw_text_is_no_champion_whatever_its_perplexity():
    pretrained = Cell("chat", method="pretrained")
    assert champions([trained(ORACLE, 1.0, "data/private/models"), trained(pretrained, 2.0, "models")]) == {}
    assert champions([trained(TOP_K, 1.0, "data/private/models")]) == {}
    assert champions([trained(TOP_K, 1.0, "models/../data/private/models")]) == {}
    assert champions([trained(TOP_K, None)]) == {}


@pytest.fixture
def with_models(tracked):
    """Model folders of Top-K, Baseline1 and Oracle that predict every token alike, as their reports say; Top-K has the
    lower loss on validation text."""
    import torch

    from tasks.language_model.settings import ArchitectureSettings
    from tasks.language_model.transformer.folder import save_model
    from tasks.language_model.transformer.model import TransformerLanguageModel
    from tasks.language_model.vocabulary import SPECIAL_TOKENS, Vocabulary

    for cell, loss in ((TOP_K, 5.0), (BASELINE1, 5.5), (ORACLE, 4.0)):
        folder = Path("data/private/models" if cell == ORACLE else "models/adapted", cell.path)
        words = Vocabulary((*SPECIAL_TOKENS, *WORDS, *(["zebrafinch"] if cell == ORACLE else [])))
        model = TransformerLanguageModel(ArchitectureSettings(layers=1, heads=2, width=8, maximum_tokens=8), len(words))
        model.initialise(1)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.zero_()
        save_model(tracked / folder, model, words)
        report = tracked / "results" / "reports" / "adapt" / f"{cell.path}.json"
        document = json.loads(report.read_text(encoding="utf-8"))
        document["outputs"] = {str(folder): content_hash(tracked / folder)}
        document["measured"]["curve"][-1]["valid_loss"] = loss
        report.write_text(json.dumps(document), encoding="utf-8")
    return tracked


def registry(folder):
    """Aliases, and cell of each version."""
    with sqlite3.connect(folder / "mlflow.db") as store:
        aliases = store.execute("select name, alias, version from registered_model_aliases").fetchall()
        versions = store.execute("select name, version, value from model_version_tags where key = 'cell'").fetchall()
    return aliases, versions


def set_models(folder, which):
    document = yaml.safe_load((folder / "params.yaml").read_text(encoding="utf-8"))
    document["tracking"]["models"] = which
    (folder / "params.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")


def has_model(folder, cell):
    run = next(run for key, run in tracked_state.runs(folder).items() if key.startswith(f"{cell.path}#"))
    return (tracked_state.artifacts(folder, run) / "language_model" / "MLmodel").exists()


def test_the_champion_is_registered_once_and_loads_by_its_alias(with_models, capsys, monkeypatch):
    """A model whose weights are all zero finds each of its ten tokens equally probable."""
    assert main(["publish"]) == 0
    assert "1 language models copied" in capsys.readouterr().out
    expected = [("palimpsest-chat", "champion", 1)], [("palimpsest-chat", 1, TOP_K.path)]
    assert registry(with_models) == expected
    assert [has_model(with_models, cell) for cell in (TOP_K, BASELINE1, ORACLE)] == [True, False, False]
    assert main(["publish"]) == 0
    assert "copied" not in capsys.readouterr().out
    assert registry(with_models) == expected

    import mlflow

    from tasks.language_model.vocabulary import SPECIAL_TOKENS

    monkeypatch.setattr(mlflow, "get_registry_uri", lambda: f"sqlite:///{with_models / 'mlflow.db'}")
    # MLflow's own setter would leave the address in the environment, for every test that follows.
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{with_models / 'mlflow.db'}")
    model = mlflow.pyfunc.load_model("models:/palimpsest-chat@champion")
    scores = model.predict(["a b", "...", "C! unheard d a"])
    tokens = len(SPECIAL_TOKENS) + len(WORDS)
    assert scores["targets"].tolist() == [3, 0, 5]
    assert scores["log_probability"][0] == pytest.approx(-3 * math.log(tokens), rel=1e-5)
    assert scores["perplexity"][2] == pytest.approx(tokens, rel=1e-5)
    assert math.isnan(scores["perplexity"][1])


def test_all_copies_every_model_but_those_of_raw_text_and_none_copies_none(with_models):
    set_models(with_models, "none")
    assert main(["publish"]) == 0
    assert not has_model(with_models, TOP_K)
    set_models(with_models, "all")
    assert main(["publish"]) == 0
    assert [has_model(with_models, cell) for cell in (TOP_K, BASELINE1, ORACLE)] == [True, True, False]
    run = next(run for key, run in tracked_state.runs(with_models).items() if key.startswith(ORACLE.path))
    tags = tracked_state.tags(with_models, run)
    assert tags["model"] == f"data/private/models/{ORACLE.path}"
    assert MODEL_TAG not in tags
    files = [file for file in tracked_state.artifacts(with_models, run).parents[1].rglob("*") if file.is_file()]
    assert not any(b"zebrafinch" in file.read_bytes() for file in files)
    assert not any(file.suffix in {".pkl", ".pickle"} for file in files)


def test_a_model_that_has_changed_since_is_not_copied(with_models, capsys):
    (with_models / "models" / "adapted" / TOP_K.path / "vocabulary.txt").write_text("other\n", encoding="utf-8")
    assert main(["publish"]) == 0
    assert "the model of chat/allow_list/minilm-top_k-1 is not at" in capsys.readouterr().err
    assert registry(with_models) == ([], [])


class RivalRegistry:
    """A registry in which another publisher makes the same version a moment before ours, and sets the alias."""

    def __init__(self, digest: str) -> None:
        self.run = SimpleNamespace(
            info=SimpleNamespace(run_id="run", artifact_uri="there"), data=SimpleNamespace(tags={MODEL_TAG: digest})
        )
        self.versions: dict[str, dict[str, str]] = {}
        self.aliases: dict[str, str] = {}

    def get_run(self, run_id):
        return self.run

    def search_registered_models(self, condition):
        return ["there is one"]

    def search_model_versions(self, condition):
        return [SimpleNamespace(version=int(number), tags=tags) for number, tags in self.versions.items()]

    def create_model_version(self, name, source, run_id, tags):
        self.versions |= {"1": dict(tags), "2": dict(tags)}
        return SimpleNamespace(version=2)

    def delete_model_version(self, name, version):
        del self.versions[version]

    def get_registered_model(self, name):
        return SimpleNamespace(aliases=dict(self.aliases))

    def set_registered_model_alias(self, name, alias, version):
        self.aliases[alias] = version
        raise MlflowException("duplicate key value violates unique constraint")


def test_two_publishers_at_once_make_one_version():
    model = trained(TOP_K, 400.0)
    registry = RivalRegistry(model.digest)
    store = SimpleNamespace(client=registry)
    assert register_models([model], {model.key: "run"}, store, TrackingSettings()) == (0, [])
    assert list(registry.versions) == ["1"]
    assert registry.aliases == {CHAMPION: "1"}
