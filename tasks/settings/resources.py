"""The section ``resources``: what changes no number, but for the last digits of sums."""

from typing import Annotated, Literal

from pydantic import Field

from tasks.settings.base import Settings


class ConcurrencySettings(Settings):
    """Steps that share something scarce, such as a GPU: a Prefect tag with a limit."""

    limit: int = Field(ge=1)
    """How many of these stages run at once, over all runs that report to the same Prefect server."""
    steps: list[str] = Field(min_length=1)
    """Names of steps in ``dvc.yaml``; ``*`` and ``?`` may stand in them."""


class StageNeeds(Settings):
    """What a stage asks a node of the cluster for."""

    cores: float | None = Field(default=None, gt=0)
    """Processor cores; ``null``: ``threads`` for each of ``devices``."""
    gpus: float = Field(default=0, ge=0)
    """GPUs; the stage sees no others."""
    memory_gib: float = Field(default=0, ge=0)
    """Memory in GiB."""
    nodes: int = Field(default=1, ge=1)
    """Machines that train it together, each with as much; ``devices`` processes on each."""


class ClusterSettings(Settings):
    """A Ray cluster over a file system that all its machines share (extra ``cluster``)."""

    address: str = Field(pattern=r"^(auto|[^/]+:\d+)$")
    """Of the cluster that this machine is a node of: ``auto``, or ``HOST:PORT``."""
    private_nodes: str
    """Label of the machines that may see private text: the custom resource that their ``ray start --resources``
    names."""
    needs: dict[str, StageNeeds] = Field(default_factory=dict)
    """What stages need, by step; the first entry that fits counts. Names may have ``*`` and ``?``:
    ``{"adapt": {gpus: 1}, "fill": {gpus: 1, memory_gib: 24}}``."""


class ResourceSettings(Settings):
    """What a run may use of the machine."""

    threads: int = Field(ge=1)
    """Threads of one stage; recorded in reports, since the order of a sum can change its last digits."""
    parallel_stages: int = Field(ge=1)
    """How many stages ``palimpsest run`` runs at once."""
    concurrency: dict[str, ConcurrencySettings] = Field(default_factory=dict)
    """Further limits, by the Prefect tag that the steps get: ``{gpu: {limit: 1, steps: [adapt, pretrain]}}``."""
    time_limits: dict[str, Annotated[float, Field(gt=0)]] = Field(default_factory=dict)
    """Seconds after which ``palimpsest run`` stops a stage, by step; the first entry that fits counts. Names may have
    ``*`` and ``?``: ``{pretrain: 7200, "*": 3600}``."""
    retries: int = Field(default=2, ge=0)
    """How often ``palimpsest run`` tries a stage again that failed of something that can pass: a lock, the network,
    memory."""
    retry_seconds: float = Field(default=10.0, ge=0)
    """Time before it is tried again; twice as long before each further time."""
    devices: int = Field(default=1, ge=1)
    """Devices of one machine that share the training of a model: GPUs, or processes where there is none."""
    nodes: int = Field(default=1, ge=1)
    """Machines that it is trained on; with more than one, torchrun starts the command on each."""
    strategy: Literal["auto", "ddp", "fsdp"] = "auto"
    """``ddp``: every device has the whole model; ``fsdp``: each has a part; ``auto``: ``ddp`` on several devices.
    A recogniser is trained with ``ddp`` whatever this says."""
    compile: bool = False
    """Whether the training of a language model compiles its blocks first: up to a minute, which a long run earns back
    (on an H100 it is then 12 % faster)."""
    checkpoint_seconds: float = Field(default=600.0, ge=0)
    """Time between two checkpoints of a training run, where ``checkpoint_steps`` is 0; 0: none by time."""
    checkpoint_steps: int = Field(default=0, ge=0)
    """Optimiser steps between two checkpoints of a training run; 0: none by steps."""
    resume: bool = True
    """Whether a training goes on from what an interrupted run of the same work has finished."""
    resume_from: str | None = None
    """The checkpoint that a training goes on from; ``null``: the last one of the same work."""
    work_folder: str | None = None
    """Where unfinished work lies until it is complete, private; ``null``: below ``.palimpsest``."""
    cluster: ClusterSettings | None = None
    """Where stages, and parts of them, run on several machines; ``null``: here."""
