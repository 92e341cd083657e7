"""Language models of releases in MLflow's registry, and no others."""

import hashlib
import math
import shutil
from pathlib import Path

import pytest
import tracked_state
from handmade_reports import TOP_K, change

from tasks.cli import main
from tasks.privacy.ledger import Release, append_to_ledger
from tasks.records.cell import Cell
from tasks.records.stage_report import content_hash

BASELINE1 = Cell("chat", "allow_list", "baseline1", None, 1)
ORACLE = Cell("chat", method="oracle", seed=1)
WORDS = ("a", "b", "c", "d")


def model_of(cell):
    return Path("data/private/models" if cell == ORACLE else "models/adapted", cell.path)


@pytest.fixture
def with_models(tracked):
    """Model folders of Top-K, Baseline1 and Oracle that predict every token alike, as their reports say."""
    import torch

    from tasks.language_model.settings import ArchitectureSettings
    from tasks.language_model.transformer.model import TransformerLanguageModel, save_model
    from tasks.language_model.vocabulary import SPECIAL_TOKENS, Vocabulary

    for cell, loss in ((TOP_K, 5.0), (BASELINE1, 5.5), (ORACLE, 4.0)):
        words = Vocabulary((*SPECIAL_TOKENS, *WORDS, *(["zebrafinch"] if cell == ORACLE else [])))
        model = TransformerLanguageModel(ArchitectureSettings(layers=1, heads=2, width=8, maximum_tokens=8), len(words))
        model.initialise(1)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.zero_()
        save_model(model_of(cell), model, words)
        report = change(f"adapt/{cell.path}", outputs={str(model_of(cell)): content_hash(model_of(cell))})
        report["measured"]["curve"][-1]["valid_loss"] = loss
        change(f"adapt/{cell.path}", measured=report["measured"])
    return tracked


def release(cell, name, **changed):
    """Put a cell's model into ``releases/NAME``, and into the ledger as ``palimpsest release`` does."""
    place = Path("releases", name, "model")
    shutil.copytree(model_of(cell), place)
    files = {f"model/{path.name}": hashlib.sha256(path.read_bytes()).hexdigest() for path in place.iterdir()}
    public = {"name": name, "when": "2026-11-22T20:00:00+00:00", "cell": cell.path, "dataset": "chat"}
    private = {"technique": str(cell.technique), "corpus": "0" * 64, "key": "0" * 12, "lines": 8000}
    promised = {"unit": None, "epsilon": None, "words_per_unit": None, "counts": None}
    append_to_ledger(Release(**public, **private, **promised, files={"text.txt": "0" * 64, **files, **changed}))


def registered(folder):
    """Aliases, the cell of each version, and the cells whose runs have files."""
    aliases = tracked_state.select(folder, "select name, alias, version from registered_model_aliases")
    cells = "select name, version, value from model_version_tags where key = 'cell'"
    versions = tracked_state.select(folder, cells)
    runs = tracked_state.runs(folder).items()
    places = {key.partition("#")[0]: tracked_state.artifacts(folder, run) for key, run in runs}
    return aliases, versions, [cell for cell, place in places.items() if place.exists()]


def test_a_released_model_is_registered_once_and_loads_as_champion(with_models, capsys, monkeypatch):
    """A model whose weights are all zero finds each of its ten tokens equally probable."""
    release(TOP_K, "spring")
    expected = [("palimpsest-chat", "champion", 1)], [("palimpsest-chat", 1, TOP_K.path)], [TOP_K.path]
    for copied in (True, False):
        assert main(["publish"]) == 0
        assert ("1 language models copied" in capsys.readouterr().out) == copied
        assert registered(with_models) == expected
    said = str(tracked_state.select(with_models, "select description from model_versions"))
    assert "masked by allow_list and filled" in said
    assert "Released as spring" in said

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


def test_no_model_of_a_cell_that_was_not_released_is_in_the_store(with_models, capsys):
    # A text without fills is no release, even if a ledger has it.
    release(BASELINE1, "baseline")
    release(ORACLE, "oracle")
    assert main(["publish"]) == 0
    assert capsys.readouterr().err == ""
    assert registered(with_models) == ([], [], [])


@pytest.mark.parametrize("difference", ["hash", "one more", "nothing there", "trained again"])
def test_files_that_are_not_the_ledgers_or_not_the_reports_are_no_released_model(with_models, capsys, difference):
    release(TOP_K, "spring", **({"model/vocabulary.txt": "0" * 64} if difference == "hash" else {}))
    if difference == "one more":
        Path("releases/spring/model/more.txt").write_text("zebrafinch\n", encoding="utf-8")
    elif difference == "nothing there":
        shutil.rmtree("releases/spring/model")
    elif difference == "trained again":
        change(f"adapt/{TOP_K.path}", outputs={str(model_of(TOP_K)): "0" * 64})
    assert main(["publish"]) == 0
    error = capsys.readouterr().err
    assert error.startswith("warning: the model of release 'spring' is ")
    assert error.count("\n") == 1
    assert registered(with_models) == ([], [], [])
