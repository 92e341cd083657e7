import pytest
from handmade_experiment import make_experiment

from tasks.cli import main


@pytest.fixture(scope="session")
def experiment_folder(tmp_path_factory):
    """A summarised handmade experiment, made once; tests that change it copy it."""
    folder = make_experiment(tmp_path_factory.mktemp("dashboards") / "experiment")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["summarise"]) == 0
    return folder
