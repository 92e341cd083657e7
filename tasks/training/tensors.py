"""The tensors of a training run: taken out for a checkpoint, and put back in.

Names are ``model/WEIGHT``, ``optimiser/WEIGHT/MOMENT``, ``best/WEIGHT``, and ``generator/DEVICE/RANK`` for the states
of the generators that dropout draws from. Weights and moments are whole however they were divided among ranks, so a
checkpoint can be taken up by any number of them.
"""

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from tasks.training.ranks.group import RankGroup

BEST = "best/"
"""Before the names of the best weights so far."""


def whole_weights(model: nn.Module) -> dict[str, Tensor]:
    """Copies of all weights, on the processor; all ranks call this together."""
    return {name: whole(parameter).clone() for name, parameter in model.named_parameters()}


def capture(model: nn.Module, optimiser: Optimizer, group: RankGroup) -> dict[str, Tensor]:
    """All tensors that decide how training goes on, on the processor; all ranks call this together.

    They may share memory with the model: write them before the next step.
    """
    tensors: dict[str, Tensor] = {}
    for name, parameter in model.named_parameters():
        tensors[f"model/{name}"] = whole(parameter)
        for key, value in optimiser.state[parameter].items():
            tensors[f"optimiser/{name}/{key}"] = whole(value)
    for rank, state in enumerate(group.gathered(torch.get_rng_state())):
        tensors[f"generator/cpu/{rank}"] = state
    if torch.cuda.is_available():
        for rank, state in enumerate(group.gathered(torch.cuda.get_rng_state())):
            tensors[f"generator/cuda/{rank}"] = state
    return tensors


@torch.no_grad()
def restore(model: nn.Module, optimiser: Optimizer, tensors: dict[str, Tensor]) -> None:
    """Put weights and moments back; the generators are ``restore_generators``'."""
    for name, parameter in model.named_parameters():
        copy_whole(parameter, tensors[f"model/{name}"])
        prefix = f"optimiser/{name}/"
        state = optimiser.state[parameter]
        for key in [key for key in tensors if key.startswith(prefix)]:
            value = tensors[key]
            if value.dim():
                state[key.removeprefix(prefix)] = moment = torch.zeros_like(parameter)
                copy_whole(moment, value)
            else:
                # The fused optimiser counts its steps where the weights are.
                state[key.removeprefix(prefix)] = value.to(parameter.device)


def restore_generators(tensors: dict[str, Tensor], rank: int, world_size: int, seed: int, step: int) -> None:
    """Set this rank's generators to where they were, or, with another number of ranks, to a new place."""
    ranks = sum(name.startswith("generator/cpu/") for name in tensors)
    if ranks != world_size:
        torch.manual_seed(rank_seed(seed, rank, step))
        return
    torch.set_rng_state(tensors[f"generator/cpu/{rank}"])
    if torch.cuda.is_available() and f"generator/cuda/{rank}" in tensors:
        torch.cuda.set_rng_state(tensors[f"generator/cuda/{rank}"])


def rank_seed(seed: int, rank: int, step: int = 0) -> int:
    """Seed of a rank's dropout: the first one has the seed itself at the beginning, all others their own."""
    if rank == step == 0:
        return seed
    return int(np.random.SeedSequence([seed, rank, step]).generate_state(1, np.uint64)[0] >> np.uint64(1))


def all_finite(tensors: dict[str, Tensor]) -> bool:
    """Whether no weight or moment is infinite or not a number."""
    return all(bool(torch.isfinite(value).all()) for value in tensors.values() if value.is_floating_point())


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
