from pathlib import Path

import pytest
from handmade_experiment import make_experiment, write_forgetting

from tasks.cli import main
from tasks.parameters.parameter_file import read_parameters

CHANGES = {
    "techniques": ["allow_list", "entity_tagger"],
    "fills": [{"filler": "minilm", "methods": ["top_k", "sample"]}, {"methods": ["unigram"]}],
    "speech_datasets": ["chat"],
}
"""Changes of ``compare``: 13 cells, of which the recogniser alone has no perplexity."""


@pytest.fixture(scope="session")
def published(tmp_path_factory) -> Path:
    """The folder of a handmade experiment that was summarised and published to MLflow; nothing changes it."""
    folder = make_experiment(tmp_path_factory.mktemp("app") / "an experiment", **CHANGES)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        assert main(["summarise"]) == 0
        write_forgetting(folder)
        assert main(["publish"]) == 0
        assert main(["report"]) == 0
    return folder


@pytest.fixture
def in_project(published, monkeypatch):
    """The published experiment as the current folder."""
    monkeypatch.chdir(published)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return published


@pytest.fixture
def parameters(in_project):
    return read_parameters(in_project / "params.yaml")
