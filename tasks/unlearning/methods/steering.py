"""LM-Steer (Han et al. 2024, "Word Embeddings Are Steers for Language Models", equation 3): a linear map of the last
hidden states that makes the text to forget more probable is learned, and taken with the opposite sign."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, field_validator

from tasks.unlearning.method import UnlearningMethod, rising

if TYPE_CHECKING:
    from torch import Tensor

    from tasks.language_model.learners import Learner
    from tasks.unlearning.request import Request

_DEVIATION = 0.02


class Steering(UnlearningMethod):
    """h - strength W h for the last hidden states h; W, of low rank, is learned as h + W h on the text to forget.

    The paper's W is as large as its rank allows and multiplied by epsilon, which is part of the strength here.
    """

    title: ClassVar[str] = "LM-Steer"
    sentence: ClassVar[str] = "Steers the last hidden states away from those of the text to forget."
    kind: Literal["steering"]
    strengths: list[Annotated[float, Field(gt=0)]] = Field(default=[0.25, 0.5, 1.0, 2.0, 4.0], min_length=1)
    """How far the map is taken."""
    rank: int = Field(default=64, ge=1)
    steps: int = Field(default=50, ge=1)
    """Of the training of the map."""
    learning_rate: float = Field(default=1e-3, gt=0)
    batch_tokens: int = Field(default=512, ge=16)

    _rising = field_validator("strengths")(rising)

    def forgetting(self, request: "Request") -> "Iterator[tuple[float, Learner]]":
        """As the class says."""
        down, up = self.learned(request)
        for strength in self.strengths:
            yield strength, request.start.steered(down, -strength * up)

    def learned(self, request: "Request") -> "tuple[Tensor, Tensor]":
        """The map's factors, (D, R) and (R, D)."""
        import torch
        from torch.nn import Parameter
        from torch.nn.functional import cross_entropy

        from tasks.language_model.learners import batches
        from tasks.unlearning.steps import trained_steps

        model = request.start
        drawn = batches(request.forget, model.longest, self.batch_tokens, request.seed)
        with torch.no_grad():
            width = model.states(next(drawn).batch).shape[1]
        generator = torch.Generator().manual_seed(request.seed)
        down = Parameter(_DEVIATION * torch.randn(width, self.rank, generator=generator))
        up = Parameter(torch.zeros(self.rank, width))

        def losses() -> "Iterator[Tensor]":
            batch = next(drawn).batch
            with torch.no_grad():
                states = model.states(batch).float()
            yield cross_entropy(model.scores_of(states + (states @ down) @ up), batch.targets)

        for _ in trained_steps(model, losses, self.learning_rate, self.steps, [down, up]):
            pass
        return down.detach(), up.detach()
