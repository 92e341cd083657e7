"""Which processes train one model together: as the settings say, or as torchrun has started them."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tasks.errors import ParameterError, ResourceError
from tasks.threads import TORCHRUN_VARIABLES, available_cores

Strategy = Literal["single", "ddp", "fsdp"]


@dataclass(frozen=True)
class RankPlan:
    """This process among those that train together; by default it is alone."""

    rank: int = 0
    """Number of this process, from 0; the first alone logs and writes."""
    world_size: int = 1
    """Processes on all machines."""
    devices: int = 1
    """Processes on this machine."""
    nodes: int = 1
    """Machines."""
    strategy: Strategy = "single"
    """How the model is divided."""
    to_be_started: bool = False
    """Whether the processes are not there yet: the command has to start them."""

    @property
    def is_first(self) -> bool:
        """Whether this process logs and writes."""
        return self.rank == 0


def plan_ranks(
    devices: int, nodes: int, strategy: str, threads: int, environment: Mapping[str, str] = os.environ
) -> RankPlan:
    """Say who trains together.

    Where torchrun has started this process, its numbers hold. Raises ``ParameterError`` where the settings contradict
    them, where several machines are asked for without torchrun, and where a strategy makes no sense for one device;
    ``ResourceError`` where this machine has fewer devices.
    """
    started = all(name in environment for name in TORCHRUN_VARIABLES)
    rank = 0
    if started:
        rank, world_size, _, local = (int(environment[name]) for name in TORCHRUN_VARIABLES)
        if world_size % local:
            raise ParameterError(
                f"torchrun started {world_size} processes, {local} of them on this machine; give every machine as many"
            )
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
    _check_devices(devices, threads)
    world_size = devices * nodes
    if world_size == 1:
        if strategy != "auto":
            raise ParameterError(
                f"strategy {strategy!r} is for several devices and there is one; give more devices, or strategy 'auto'"
            )
        return RankPlan()
    return RankPlan(
        rank=rank,
        world_size=world_size,
        devices=devices,
        nodes=nodes,
        strategy="fsdp" if strategy == "fsdp" else "ddp",
        to_be_started=not started,
    )


def _check_devices(devices: int, threads: int) -> None:
    if devices == 1:
        return
    import torch

    if torch.cuda.is_available():
        there, what = torch.cuda.device_count(), "GPUs"
    else:
        cores = available_cores()
        there, what = max(1, cores // threads), f"processor cores for {threads} threads each, and no GPU"
    if devices > there:
        raise ResourceError(
            f"devices is {devices!r} and this machine has {there} {what}; give {there} or fewer"
            if what == "GPUs"
            else f"devices is {devices!r} and this machine has room for {there} processes ({cores} {what}); give "
            f"{there} or fewer, or fewer threads"
        )
