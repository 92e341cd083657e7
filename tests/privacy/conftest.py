"""An experiment whose private text holds planted words, after all that can happen to it."""

from pathlib import Path

import pytest
from canary_search import CanarySearch
from planted_experiment import CANARIES, NAME, break_private_lines, mend_corpus, plant
from prefect_server import log_in, password_in
from tokenizers_in_use import encoders

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="session")
def search(lived) -> CanarySearch:
    """With the tokenizers that come with the project, and those of the experiment's own models."""
    return CanarySearch([*CANARIES, NAME], [*encoders(ROOT), *encoders(lived.folder)])


@pytest.fixture(scope="session")
def lived(tmp_path_factory):
    """The tiny experiment after a run and a failed one that reported to servers of its own, which are still there."""
    made = plant(tmp_path_factory.mktemp("private"))
    made.run("palimpsest", "up")
    log_in(made.address("prefect"), password_in(made.folder))
    try:
        made.run("palimpsest", "run")
        made.run("dvc", "remote", "add", "--default", "shared", str(made.remote))
        made.run("dvc", "push")
        made.run("dvc", "push", "--run-cache")
        break_private_lines(made.folder)
        # A corpus is looked at before any stage starts; the others are not.
        made.run("palimpsest", "run", expect=1)
        mend_corpus(made.folder)
        made.run("palimpsest", "run", expect=1)
        made.run("git", "add", "-A")
        yield made
    finally:
        made.run("palimpsest", "down")
