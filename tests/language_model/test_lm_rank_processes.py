"""The cause that is reported where one of several processes fails."""

import os
import signal
import time
from functools import partial

import pytest
from torch import distributed

from tasks.errors import ResourceError, StageError
from tasks.training.ranks import RankPlan, start_ranks

TWO = RankPlan(world_size=2, devices=2, strategy="ddp", to_be_started=True)


def _fail(endings: dict[str, str]) -> None:
    distributed.init_process_group("gloo")
    what = endings[os.environ["RANK"]]
    if what == "lost":
        distributed.barrier()  # fails once the other process has ended
    if what == "defect":
        raise KeyError("private words")
    if what == "killed":
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize(
    ("endings", "kind", "message"),
    [
        ({"0": "lost", "1": "defect"}, StageError, "rank 1 of 2 ended with exit status 70; its own message"),
        ({"0": "lost", "1": "killed"}, ResourceError, "rank 1 of 2 was ended by SIGKILL"),
    ],
)
def test_the_cause_is_reported_and_not_its_consequences(endings, kind, message, capfd):
    started, handlers = time.monotonic(), [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)]
    with pytest.raises(kind, match=message):
        start_ranks(partial(_fail, endings), TWO)
    assert time.monotonic() - started < 60
    assert [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)] == handlers
    assert "private words" not in capfd.readouterr().err
