"""The view of MLflow's table when another publisher offers it at the same moment."""

from types import SimpleNamespace

from mlflow.exceptions import MlflowException

from tasks.results.summary.summary_file import VIEW_TAG, offer_view


class Rival:
    """A client whose every write comes too late: another one has written the same first."""

    def __init__(self) -> None:
        self.tags: dict[str, str] = {}

    def get_experiment(self, experiment_id: str) -> SimpleNamespace:
        return SimpleNamespace(tags=dict(self.tags))

    def set_experiment_tag(self, experiment_id: str, name: str, value: str) -> None:
        self.tags[name] = value
        raise MlflowException("duplicate key value violates unique constraint")


def test_what_another_publisher_has_written_is_good():
    client = Rival()
    offer_view(client, "1")
    assert set(client.tags) == {VIEW_TAG, "mlflow.experimentKind"}
