"""The processes that train one model together: one for each device, started here or by torchrun."""

import logging
import os
import pickle
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

from tasks.errors import PalimpsestError, ParameterError, PassingError, ResourceError, StageError
from tasks.threads import TORCHRUN_VARIABLES, available_cores

Result = TypeVar("Result")
_TIMEOUT = timedelta(minutes=30)
"""Longest time that a process waits for another running one."""
_TERMINATION_SECONDS = 600
"""Time to write a checkpoint after SIGTERM."""
_GRACE_SECONDS = 2.0
"""Delay before the end of a process that failed, since it may have lost another one, which is then the cause."""


@dataclass(frozen=True)
class RankPlan:
    """This process among those that train together; the default is a single process."""

    rank: int = 0
    """Number of this process, from 0; only the first logs and writes."""
    world_size: int = 1
    """Number of processes on all machines."""
    devices: int = 1
    """Number of processes on this machine."""
    nodes: int = 1
    """Number of machines."""
    strategy: Literal["single", "ddp", "fsdp"] = "single"
    """Distribution of the model over the processes."""
    to_be_started: bool = False
    """Whether the command must still start the processes."""

    @property
    def is_first(self) -> bool:
        """Whether this process logs and writes."""
        return self.rank == 0

    def devices_of_trainer(self) -> dict[str, Any]:
        """The arguments of Lightning's ``Trainer``."""
        if self.strategy == "single":
            return {"devices": 1}
        from lightning.pytorch.plugins.environments import TorchElasticEnvironment
        from lightning.pytorch.strategies import DDPStrategy, ModelParallelStrategy

        # Lightning's own "fsdp" refuses a processor; this one leaves the sharding to configure_model.
        parallel = partial(ModelParallelStrategy, self.world_size, 1, save_distributed_checkpoint=False)
        strategy = (parallel if self.strategy == "fsdp" else DDPStrategy)(timeout=_TIMEOUT)
        plugins = [TorchElasticEnvironment()]
        return {"devices": self.devices, "num_nodes": self.nodes, "strategy": strategy, "plugins": plugins}


def plan_ranks(
    devices: int, nodes: int, strategy: str, threads: int, environment: Mapping[str, str] = os.environ
) -> RankPlan:
    """The plan of the processes that train together.

    Torchrun's numbers apply where it started this process. Raises ``ParameterError`` where the settings contradict
    them, for several machines without torchrun, and for a strategy with one device. Raises ``ResourceError`` where this
    machine has fewer devices.
    """
    started = all(name in environment for name in TORCHRUN_VARIABLES)
    rank = 0
    if started:
        rank, world_size, _, local = (int(environment[name]) for name in TORCHRUN_VARIABLES)
        if devices not in (1, local) or nodes not in (1, world_size // local):
            raise ParameterError(
                f"devices is {devices!r} and nodes {nodes!r}, but torchrun started {local} processes on each of "
                f"{world_size // local} machines; give the same numbers, or leave them to torchrun"
            )
        devices, nodes = local, world_size // local
    elif nodes > 1:
        raise ParameterError(
            f"nodes is {nodes!r}: start the command on each machine with torchrun, as in 'torchrun --nnodes {nodes} "
            f"--nproc-per-node {devices} --rdzv-endpoint HOST:29500 -m tasks.cli adapt ...'"
        )
    if devices > 1:
        _check_devices(devices, threads)
    if devices * nodes > 1:
        shared: Literal["ddp", "fsdp"] = "fsdp" if strategy == "fsdp" else "ddp"
        return RankPlan(rank, devices * nodes, devices, nodes, shared, to_be_started=not started)
    if strategy != "auto":
        raise ParameterError(
            f"strategy {strategy!r} is for several devices and there is one; give more devices, or strategy 'auto'"
        )
    return RankPlan()


def _check_devices(devices: int, threads: int) -> None:
    import torch

    cores = available_cores()
    has_gpu = torch.cuda.is_available()
    there = torch.cuda.device_count() if has_gpu else max(1, cores // threads)
    if devices > there:
        raise ResourceError(
            f"devices is {devices!r} and this machine has {there} GPUs; give {there} or fewer"
            if has_gpu
            else f"devices is {devices!r} and this machine has room for {there} processes ({cores} processor cores for "
            f"{threads} threads each, and no GPU); give {there} or fewer, or fewer threads"
        )


def start_ranks(run: Callable[[], Result], plan: RankPlan) -> Result:
    """Run ``run()`` in ``plan.devices`` processes by PyTorch's launcher, and return the result of the first.

    ``run`` can be pickled. The first failure ends all. A user error is raised unchanged. A process ended by a signal
    raises a ``PassingError`` that names the signal. Any other failure has printed its own line and raises a
    ``StageError``. After SIGTERM the exit status is 143.
    """
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    logging.getLogger("torch.distributed").setLevel(logging.CRITICAL)
    # PyTorch's launcher replaces these handlers; without them Ctrl-C does nothing in a notebook.
    names = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
    handlers = {name: signal.getsignal(name) for name in names}
    with tempfile.TemporaryDirectory(prefix="palimpsest-ranks-") as folder:
        config = LaunchConfig(
            1,
            1,
            plan.devices,
            DefaultLogsSpecs(folder),
            "palimpsest",
            rdzv_backend="c10d",
            rdzv_endpoint="127.0.0.1:0",
            local_addr="127.0.0.1",
            max_restarts=0,
            shutdown_timeout=_TERMINATION_SECONDS,
        )
        try:
            results: dict[int, Result] = elastic_launch(config, _rank_main)(run, folder)
            return results[0]
        except SignalException as ended:
            if ended.sigval == signal.SIGINT:
                raise KeyboardInterrupt from None
            raise SystemExit(128 + ended.sigval) from None
        except ChildFailedError as failed:
            rank, failure = failed.get_first_failure()
            raise _error_of(rank, failure.exitcode, Path(folder) / str(rank), plan.devices) from None
        finally:
            if threading.current_thread() is threading.main_thread():
                for name, handler in handlers.items():
                    signal.signal(name, handler)


def _error_of(rank: int, status: int, said: Path, ranks: int) -> BaseException:
    """The error of the process that failed first; ``said``: the file with its user error, if it had one."""
    if said.exists():
        error: BaseException = pickle.loads(said.read_bytes())
        return error
    if status == 128 + signal.SIGTERM:
        return SystemExit(status)
    if status < 0:
        return PassingError(
            f"rank {rank} of {ranks} was ended by {signal.Signals(-status).name}, and the training with it (the system "
            "kills a process that takes too much memory); the same command goes on from the last checkpoint"
        )
    return StageError(f"rank {rank} of {ranks} ended with exit status {status}; its own message is above")


def _rank_main(run: Callable[[], Result], folder: str) -> Result:
    """Run the command in one process; a user error is written to a file for the waiting process."""
    from tqdm import tqdm

    from tasks import cli, process_environment

    # By default progress bars share a semaphore among processes, which would survive when this one is killed.
    tqdm.set_lock(threading.RLock())
    process_environment.set_variables()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        return run()
    except (PalimpsestError, OSError) as error:
        (Path(folder) / os.environ["RANK"]).write_bytes(pickle.dumps(error))
        sys.exit(1)
    except Exception as error:
        time.sleep(_GRACE_SECONDS)
        sys.exit(cli.internal_error(error))
