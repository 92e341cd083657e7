"""One process per device, started by PyTorch's launcher, which ends all of them as soon as one has failed."""

import logging
import os
import pickle
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from tasks.errors import PalimpsestError, ResourceError, StageError
from tasks.training.ranks.plan import RankPlan

Result = TypeVar("Result")
_TERMINATED = 128 + signal.SIGTERM
_HERE = "127.0.0.1"
_TERMINATION_SECONDS = 600
"""Time for a checkpoint after SIGTERM."""
_GRACE_SECONDS = 2.0
"""A process that lost another one ends so much later: the launcher reports the first end that it sees."""


class LostRankError(ResourceError):
    """Another process of the same training has ended."""


def start_ranks(run: Callable[[], Result], plan: RankPlan) -> Result:
    """The result of ``run()`` in the first of ``plan.devices`` processes, which all run it.

    ``run`` can be pickled. The first failure ends all: a user error is raised as it was, a process that a signal ended
    is named in a ``ResourceError``, any other failure, which has printed its own line, in a ``StageError``. After
    SIGTERM the exit status is 143.
    """
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    logging.getLogger("torch.distributed").setLevel(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="palimpsest-ranks-") as folder:
        config = LaunchConfig(
            1, 1, plan.devices, DefaultLogsSpecs(folder), "palimpsest", rdzv_backend="c10d", rdzv_endpoint=f"{_HERE}:0",
            local_addr=_HERE, max_restarts=0, shutdown_timeout=_TERMINATION_SECONDS,
        )  # fmt: skip
        try:
            results: dict[int, Result] = elastic_launch(config, _rank_main)(run, folder)
            return results[0]
        except SignalException as ended:
            if ended.sigval == signal.SIGINT:
                raise KeyboardInterrupt from None
            raise SystemExit(128 + ended.sigval) from None
        except ChildFailedError as failed:
            rank, failure = failed.get_first_failure()
            if (said := Path(folder) / str(rank)).exists():
                raise pickle.loads(said.read_bytes()) from None
            if failure.exitcode == _TERMINATED:
                raise SystemExit(_TERMINATED) from None
            of = f"rank {rank} of {plan.devices}"
            if failure.exitcode < 0:
                raise ResourceError(
                    f"{of} was ended by {signal.Signals(-failure.exitcode).name}, and the training with it (the system "
                    "kills a process that takes too much memory); the same command goes on from the last checkpoint"
                ) from None
            raise StageError(f"{of} ended with exit status {failure.exitcode}; its own message stands above") from None


def _rank_main(run: Callable[[], Result], folder: str) -> Result:
    """One process: run the command and, where a user error ends it, leave the error for the process that waits."""
    from tqdm import tqdm

    from tasks import cli, telemetry

    # By default bars share a semaphore among processes, which the system keeps when this one is killed.
    tqdm.set_lock(threading.RLock())
    telemetry.switch_off()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        return run()
    except (PalimpsestError, OSError) as error:
        (Path(folder) / os.environ["RANK"]).write_bytes(pickle.dumps(error))
        if isinstance(error, LostRankError):
            time.sleep(_GRACE_SECONDS)
        sys.exit(1)
    except Exception as error:
        sys.exit(cli.internal_error(error))


@contextmanager
def lost_ranks_named(plan: RankPlan) -> Iterator[None]:
    """Turn what the network says when a process has gone into a ``LostRankError``."""
    try:
        yield
    except (RuntimeError, ConnectionError) as error:
        if plan.world_size == 1 or not _is_of_the_network(error):
            raise
        raise LostRankError(
            f"rank {plan.rank} of {plan.world_size} lost the connection to another one, which has ended; its message "
            "says why, and the same command goes on from the last checkpoint"
        ) from None


def _is_of_the_network(error: BaseException) -> bool:
    from torch import distributed

    if isinstance(error, distributed.DistError | ConnectionError):
        return True
    text = str(error)
    return any(word in text for word in ("gloo", "Gloo", "NCCL", "Connection closed", "Connection reset", "TCPStore"))
