"""Representation misdirection, RMU (Li et al. 2024, "The WMDP Benchmark: Measuring and Reducing Malicious Use With
Unlearning", equations 1 to 3): hidden states of the text to forget are pushed to a random direction."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, field_validator

from tasks.unlearning.method import UnlearningMethod, rising

if TYPE_CHECKING:
    from torch import Tensor

    from tasks.language_model.learners import Learner
    from tasks.unlearning.request import Request

_TRAINED_LAYERS = 3


class Misdirection(UnlearningMethod):
    """|h - c |h| u|^2 on the text to forget, and |h - h_start|^2 on text that is kept, of the states h behind a layer.

    The layer and the two before it learn. The paper's c is a number for one model; here it is one by the states'
    own mean length, so that it means the same for all.
    """

    title: ClassVar[str] = "RMU"
    sentence: ClassVar[str] = "Pushes hidden states of the text to forget to a random direction."
    kind: Literal["misdirection"]
    steps: list[Annotated[float, Field(ge=1)]] = Field(default=[10, 25, 50, 100, 200], min_length=1)
    """Strengths: so many steps."""
    layer: int | None = Field(default=None, ge=1)
    """Behind which layer, from 1; ``null``: the one at two thirds of the depth."""
    scale: float = Field(default=2.0, gt=0)
    """c: how long the random direction is, by the mean length of the states."""
    retain_weight: float = Field(default=10.0, ge=0)
    """Weight of the part on text that is kept."""
    learning_rate: float = Field(default=3e-4, gt=0)
    batch_tokens: int = Field(default=512, ge=16)

    _rising = field_validator("steps")(rising)

    def forgetting(self, request: "Request") -> "Iterator[tuple[float, Learner]]":
        """As the class says; ``ParameterError`` where the model has no such layer."""
        import torch

        from tasks.errors import ParameterError
        from tasks.unlearning.steps import drawn_batches, trained_steps

        start, model = request.start, request.start.copy()
        depth = len(model.layers)
        layer = self.layer or -(-2 * depth // 3)
        if layer > depth:
            raise ParameterError(f"unlearning: layer {layer!r} of a model of {depth} layers; give {depth} at most")
        forget, retain = drawn_batches(model, (request.forget, request.retain), self.batch_tokens, request.seed)
        learned = [
            weight for part in model.layers[max(0, layer - _TRAINED_LAYERS) : layer] for weight in part.parameters()
        ]
        with torch.no_grad():
            states = start.states(next(forget).batch, layer).float()
        direction = torch.rand(states.shape[1], generator=torch.Generator().manual_seed(request.seed)).to(states)
        aim = self.scale * states.norm(dim=1).mean() * direction / direction.norm()  # (D,)
        size = states.square().sum(1).mean()

        def losses() -> "Iterator[Tensor]":
            yield (model.states(next(forget).batch, layer).float() - aim).square().sum(1).mean() / size
            kept = next(retain).batch
            with torch.no_grad():
                before = start.states(kept, layer).float()
            now = model.states(kept, layer).float()
            yield self.retain_weight * (now - before).square().sum(1).mean() / size

        for step in trained_steps(model, losses, self.learning_rate, int(self.steps[-1]), learned):
            if step in self.steps:
                yield float(step), model.copy()
