"""The view of MLflow's table when another publisher offers it at the same moment."""

from types import SimpleNamespace

import pytest
from mlflow.exceptions import MlflowException

from tasks.results.summary.summary_file import VIEW_TAG, offer_view


class Rival:
    """A client whose every write comes too late: another one has written first, this value or another."""

    def __init__(self, written: str | None = None) -> None:
        self.tags: dict[str, str] = {}
        self.written = written

    def get_experiment(self, experiment_id: str) -> SimpleNamespace:
        return SimpleNamespace(tags=dict(self.tags))

    def set_experiment_tag(self, experiment_id: str, name: str, value: str) -> None:
        self.tags[name] = value if self.written is None else self.written
        raise MlflowException("duplicate key value violates unique constraint")


def test_what_another_publisher_has_written_is_good():
    client = Rival()
    offer_view(client, "1")
    assert set(client.tags) == {VIEW_TAG, "mlflow.experimentKind"}


def test_what_was_not_written_is_an_error():
    with pytest.raises(MlflowException, match="duplicate key"):
        offer_view(Rival("another view"), "1")
