"""Who trains together: as the settings say, or as torchrun has started the processes."""

import os

import pytest

from tasks.errors import ParameterError, ResourceError
from tasks.training.ranks import RankPlan, plan_ranks


def test_who_trains_together():
    plan = plan_ranks(1, 1, "auto", 1, {})
    assert plan == RankPlan()
    assert plan.is_first
    environment = {"RANK": "5", "WORLD_SIZE": "6", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}
    expected = RankPlan(rank=5, world_size=6, devices=2, nodes=3, strategy="ddp")
    if len(os.sched_getaffinity(0)) >= 2:
        plan = plan_ranks(2, 1, "fsdp", 1, {})
        assert plan == RankPlan(world_size=2, devices=2, strategy="fsdp", to_be_started=True)
        # What torchrun says holds.
        assert plan_ranks(1, 1, "auto", 1, environment) == expected
        assert plan_ranks(2, 3, "ddp", 1, environment) == expected
    with pytest.raises(ParameterError, match="torchrun started 2 processes on each of 3 machines"):
        plan_ranks(2, 2, "auto", 1, environment)
    with pytest.raises(ResourceError, match=r"devices is 5000 and this machine has room for \d+ processes"):
        plan_ranks(5000, 1, "auto", 1, {})
    with pytest.raises(ResourceError, match="give 1 or fewer, or fewer threads"):
        plan_ranks(2, 1, "auto", len(os.sched_getaffinity(0)), {})
    with pytest.raises(ParameterError, match="start the command on each machine with torchrun"):
        plan_ranks(2, 2, "auto", 1, {})
    with pytest.raises(ParameterError, match="strategy 'fsdp' is for several devices and there is one"):
        plan_ranks(1, 1, "fsdp", 1, {})
