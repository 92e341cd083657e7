"""Settings by step: time limits, tags with limits, times between tries."""

from types import SimpleNamespace
from typing import Any

import pytest

from flows.runs.preparation import check_step_names, retry_delays, tags, time_limit
from tasks.errors import ParameterError
from tasks.settings.checks import check_settings
from tasks.settings.resources import ResourceSettings


def resources(**values: Any) -> ResourceSettings:
    return check_settings(ResourceSettings, {"threads": 1, "parallel_stages": 1, **values}, "resources")


@pytest.mark.parametrize(
    ("cores", "gib", "threads", "stages"), [(8, 64, 1, 8), (8, 64, 4, 2), (8, 11, 1, 4), (2, 64, 4, 1), (2, 1, 1, 1)]
)
def test_as_many_stages_run_at_once_as_cores_and_memory_have_room_for(
    cores: int, gib: int, threads: int, stages: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks.settings.resources.available_cores", lambda: cores)
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=gib << 30))
    assert resources(threads=threads, parallel_stages=None).stages_at_once == stages
    assert resources(threads=threads, parallel_stages=3).stages_at_once == 3


def test_the_first_limit_that_fits_counts() -> None:
    limits = resources(time_limits={"fill": 5, "fill_*": 6, "*": 7})
    assert [time_limit(limits, step) for step in ("fill", "fill_tuned", "mask")] == [5, 6, 7]
    assert time_limit(resources(time_limits={"fill": 5}), "mask") is None


def test_a_step_has_every_tag_that_names_it() -> None:
    shared = resources(
        concurrency={
            "gpu": {"limit": 1, "steps": ["adapt_*", "pretrain"]},
            "memory": {"limit": 2, "steps": ["pretrain"]},
        }
    )
    assert tags(shared, "pretrain") == ["gpu", "memory"]
    assert tags(shared, "adapt_filled") == ["gpu"]
    assert tags(shared, "mask") == []


def test_each_further_try_waits_twice_as_long() -> None:
    assert retry_delays(resources(retries=3, retry_seconds=5)) == [5, 10, 20]
    assert retry_delays(resources(retries=0)) == []


def test_a_name_that_fits_no_step_is_an_error() -> None:
    shared: dict[str, Any] = {"concurrency": {"gpu": {"limit": 1, "steps": ["adapt_*"]}}}
    on_nodes = {"cluster": {"address": "auto", "private_nodes": "private", "needs": {"fil": {"gpus": 1}}}}
    for values, where in [
        ({"time_limits": {"fil": 5}}, "resources.time_limits: 'fil' fits no step of dvc.yaml (did you mean 'fill'?)"),
        (shared, "resources.concurrency.gpu.steps: 'adapt_*' fits no step"),
        (on_nodes, "resources.cluster.needs: 'fil' fits no step of dvc.yaml (did you mean 'fill'?)"),
    ]:
        with pytest.raises(ParameterError) as error:
            check_step_names(resources(**values), ["fill", "mask"])
        assert where in str(error.value)
        assert "there are: fill, mask" in str(error.value)
