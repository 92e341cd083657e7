import sqlite3
from unittest.mock import patch

from benchmarks.publishing_speed import contents, record
from tasks.results.tracking import publication
from tasks.results.tracking.settings import TrackingSettings


def test_runs_written_at_once_are_what_mlflows_own_calls_leave(tmp_path, empty_store):
    left = []
    for name in ("by us", "by calls"):
        store = tmp_path / f"{name}.db"
        store.write_bytes(empty_store.read_bytes())
        with patch.object(publication, "can_write", return_value=name == "by us"):
            result = publication.publish(
                [record(number) for number in range(3)], TrackingSettings(uri=f"sqlite:///{store}")
            )
        assert result.created == 3
        left.append(contents(store))
    assert left[0] == left[1]
    assert len(left[0]["metrics"]) == 3 * (63 + 52)


def test_more_runs_than_fit_into_one_transaction_are_all_there(tmp_path, empty_store):
    store = tmp_path / "many.db"
    store.write_bytes(empty_store.read_bytes())
    settings = TrackingSettings(uri=f"sqlite:///{store}")
    records = [record(number) for number in range(205)]
    assert publication.publish(records[:5], settings).created == 5
    assert (second := publication.publish(records, settings)).created == 200
    assert second.unchanged == 5
    with sqlite3.connect(store) as opened:
        assert opened.execute("select count(*) from runs").fetchone() == (205,)
        # Datasets that runs share are there once.
        assert opened.execute("select count(*), count(distinct name) from datasets").fetchone() == (138, 138)
