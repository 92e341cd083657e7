"""The section ``resources``: settings that change no number, except for the last digits of sums."""

from typing import Annotated, Literal

import psutil
from pydantic import Field

from tasks.settings.base import Settings
from tasks.threads import available_cores

_BYTES_OF_STAGE = 5 << 29


class ConcurrencySettings(Settings):
    """A limit for steps that share a scarce resource, such as a GPU: a Prefect tag."""

    limit: int = Field(ge=1)
    """Most parallel stages of these steps, over all runs that report to the same Prefect server."""
    steps: list[str] = Field(min_length=1)
    """Names of steps in ``dvc.yaml``, with ``*`` and ``?`` as wildcards."""


class StageNeeds(Settings):
    """Needs of a stage on a node of the cluster."""

    cores: float | None = Field(default=None, gt=0)
    """Processor cores; ``null``: ``threads`` for each of ``devices``."""
    gpus: float = Field(default=0, ge=0)
    """GPUs; the stage sees no others."""
    memory_gib: float = Field(default=0, ge=0)
    """Memory in GiB."""
    nodes: int = Field(default=1, ge=1)
    """Machines that train it together, each with these needs; ``devices`` processes on each."""


class ClusterSettings(Settings):
    """A Ray cluster with a file system that all its machines share (extra ``cluster``)."""

    address: str = Field(pattern=r"^(auto|[^/]+:\d+)$")
    """Address of this machine's cluster: ``auto``, or ``HOST:PORT``."""
    private_nodes: str
    """Label of the machines that may read private text: the custom resource in their ``ray start --resources``."""
    needs: dict[str, StageNeeds] = Field(default_factory=dict)
    """Needs of stages, by step; the first entry that fits counts. Names may have ``*`` and ``?``:
    ``{"adapt": {gpus: 1}, "fill": {gpus: 1, memory_gib: 24}}``."""


class ResourceSettings(Settings):
    """Resources of the machine for a run."""

    threads: int = Field(ge=1)
    """Threads of one stage; recorded in reports, since the order of a sum can change its last digits."""
    parallel_stages: int | None = Field(default=None, ge=1)
    """Number of stages that ``palimpsest run`` runs in parallel; ``null``: as many as cores and memory have room for,
    at ``threads`` cores and 2.5 GiB for each."""
    concurrency: dict[str, ConcurrencySettings] = Field(default_factory=dict)
    """Further limits, by the Prefect tag of the steps: ``{gpu: {limit: 1, steps: [adapt, pretrain]}}``."""
    time_limits: dict[str, Annotated[float, Field(gt=0)]] = Field(default_factory=dict)
    """Seconds after which ``palimpsest run`` stops a stage, by step; the first entry that fits counts. Names may have
    ``*`` and ``?``: ``{pretrain: 7200, "*": 3600}``."""
    retries: int = Field(default=2, ge=0)
    """Number of times that ``palimpsest run`` retries a stage after a temporary failure: a lock, the network,
    memory."""
    retry_seconds: float = Field(default=10.0, ge=0)
    """Seconds before the first retry; twice as long before each further one."""
    devices: int = Field(default=1, ge=1)
    """Devices of one machine that share the training of a model: GPUs, or processes without a GPU."""
    nodes: int = Field(default=1, ge=1)
    """Machines that train a model; with more than one, torchrun starts the command on each."""
    strategy: Literal["auto", "ddp", "fsdp"] = "auto"
    """``ddp``: every device has the whole model; ``fsdp``: each has a part; ``auto``: ``ddp`` on several devices. A
    recogniser is always trained with ``ddp``."""
    compile: bool = False
    """Whether the training of a language model compiles its blocks first: this takes up to a minute, which pays off in
    a long run (on an H100 it is then 12 % faster)."""
    checkpoint_seconds: float = Field(default=600.0, ge=0)
    """Seconds between two checkpoints of a training run, if ``checkpoint_steps`` is 0; 0: none by time."""
    checkpoint_steps: int = Field(default=0, ge=0)
    """Optimiser steps between two checkpoints of a training run; 0: none by steps."""
    resume: bool = True
    """Whether a training continues from the state of an interrupted run of the same work."""
    resume_from: str | None = None
    """Checkpoint from which a training continues; ``null``: the last one of the same work."""
    work_folder: str | None = None
    """Private folder of unfinished work; ``null``: in ``.palimpsest``."""
    cluster: ClusterSettings | None = None
    """Cluster for stages, and parts of them, on several machines; ``null``: this machine."""

    @property
    def stages_at_once(self) -> int:
        """``parallel_stages``, or the number of stages that this machine has room for."""
        room = min(available_cores() // self.threads, psutil.virtual_memory().available // _BYTES_OF_STAGE)
        return self.parallel_stages or max(room, 1)
