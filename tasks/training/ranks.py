"""The processes that train one model together: one for each device, started here or by torchrun."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from tasks.errors import ParameterError, PassingError, ResourceError, StageError
from tasks.settings.resources import ResourceSettings
from tasks.threads import TORCHRUN_VARIABLES, available_cores


@dataclass(frozen=True)
class RankPlan:
    """This process among those that train together; by default it is alone."""

    rank: int = 0
    """From 0; only the first process logs and writes."""
    world_size: int = 1
    devices: int = 1
    """Number of processes on this machine, of the ``world_size`` on all machines."""
    strategy: Literal["single", "ddp", "fsdp"] = "single"
    to_be_started: bool = False
    """Whether the command must still start the processes."""

    @property
    def is_first(self) -> bool:
        """Whether this process logs and writes."""
        return self.rank == 0

    @property
    def nodes(self) -> int:
        """Number of machines."""
        return self.world_size // self.devices

    def devices_of_trainer(self) -> dict[str, Any]:
        """The arguments of Lightning's ``Trainer``."""
        if self.strategy == "single":
            return {"devices": 1}
        from lightning.pytorch.plugins.environments import TorchElasticEnvironment
        from lightning.pytorch.strategies import ModelParallelStrategy

        strategy: Any = "ddp"
        if self.strategy == "fsdp":
            # Lightning's own "fsdp" refuses a processor; this one leaves the sharding to configure_model.
            strategy = ModelParallelStrategy(self.world_size, 1, save_distributed_checkpoint=False)
        # Lightning's default environment would remove WORLD_SIZE at the end.
        several = {"num_nodes": self.nodes, "plugins": [TorchElasticEnvironment()]}
        return {"devices": self.devices, "strategy": strategy, **several}


ALONE = RankPlan()


def ranks_of_torchrun(strategy: Literal["ddp", "fsdp"] = "ddp") -> RankPlan:
    """The plan of the processes that torchrun, or ``start_ranks``, has started."""
    if any(name not in os.environ for name in TORCHRUN_VARIABLES):
        return ALONE
    rank, ranks, _, local = (int(os.environ[name]) for name in TORCHRUN_VARIABLES)
    return RankPlan(rank, ranks, local, strategy) if ranks > 1 else ALONE


def plan_ranks(resources: ResourceSettings) -> RankPlan:
    """The plan of the processes that train together: torchrun's, or those to be started.

    Raises ``ParameterError`` for several machines without torchrun, ``ResourceError`` where this one lacks devices.
    """
    strategy: Literal["ddp", "fsdp"] = "fsdp" if resources.strategy == "fsdp" else "ddp"
    started, devices = ranks_of_torchrun(strategy), resources.devices
    if started.world_size > 1 or devices == resources.nodes == 1:
        return started
    if resources.nodes > 1:
        raise ParameterError(f"nodes is {resources.nodes!r}: start the command on each machine with torchrun")
    import torch

    there = torch.cuda.device_count() or max(1, available_cores() // resources.threads)
    if devices > there:
        raise ResourceError(f"devices is {devices!r} and this machine has {there} (GPUs, or cores without one)")
    return RankPlan(0, devices, devices, strategy, to_be_started=True)


def start_ranks(run: Callable[[], object], devices: int) -> None:
    """Run ``run()``, which can be pickled, in a process for each device; the first failure ends all.

    A process prints its own error. Raises ``PassingError`` where the same command may succeed later.
    """
    from lightning.fabric.plugins.environments.lightning import find_free_network_port
    from torch.multiprocessing import ProcessExitedException, spawn

    try:
        spawn(_run_rank, (run, devices, find_free_network_port()), devices)
    except ProcessExitedException as failed:
        kind = PassingError if failed.exit_code in (75, -9) else StageError
        raise kind(f"rank {failed.error_index} of {devices} failed ({failed}); its own message is above") from None


def _run_rank(rank: int, run: Callable[[], object], devices: int, port: int) -> None:
    from tasks import cli

    os.environ |= dict(zip(TORCHRUN_VARIABLES, map(str, (rank, devices, rank, devices)), strict=True))
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    sys.exit(cli.guarded(run))
