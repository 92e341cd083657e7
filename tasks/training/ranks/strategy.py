"""What Lightning is told about devices, and the whole of what is divided among them."""

from datetime import timedelta
from typing import Any

from torch import Tensor, nn

from tasks.training.ranks.plan import RankPlan

_TIMEOUT = timedelta(minutes=30)
"""Longest time that a rank waits for another one that is alive."""


def trainer_options(plan: RankPlan) -> dict[str, Any]:
    """Arguments of Lightning's ``Trainer`` for a plan."""
    if plan.strategy == "single":
        return {"devices": 1}
    from lightning.pytorch.plugins.environments import TorchElasticEnvironment
    from lightning.pytorch.strategies import DDPStrategy, ModelParallelStrategy

    strategy: Any
    if plan.strategy == "ddp":
        strategy = DDPStrategy(timeout=_TIMEOUT)
    else:
        # Lightning's own "fsdp" refuses a processor; this one leaves the division to configure_model.
        strategy = ModelParallelStrategy(data_parallel_size=plan.world_size, tensor_parallel_size=1, timeout=_TIMEOUT)
    return {
        "devices": plan.devices,
        "num_nodes": plan.nodes,
        "strategy": strategy,
        "plugins": [TorchElasticEnvironment()],
    }


def whole(tensor: Tensor) -> Tensor:
    """The whole of a tensor that may be divided among ranks, on the processor; all ranks call this together."""
    from torch.distributed.tensor import DTensor

    return (tensor.full_tensor() if isinstance(tensor, DTensor) else tensor).detach().cpu()


def copy_whole(target: Tensor, values: Tensor) -> None:
    """Put the whole of a tensor into one that may be divided among ranks."""
    from torch.distributed.tensor import DTensor, distribute_tensor

    if isinstance(target, DTensor):
        values = distribute_tensor(values.to(target.device), target.device_mesh, target.placements)
    target.copy_(values)


def parameters_of(module: nn.Module) -> dict[str, nn.Parameter]:
    """Parameters by name; a tied one once."""
    return dict(module.named_parameters())
