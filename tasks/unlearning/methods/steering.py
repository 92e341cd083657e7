"""LM-Steer (Han et al. 2024, "Word Embeddings Are Steers for Language Models", equation 3). A linear map of the last
hidden states is learned that makes the text to forget more probable, and applied with the opposite sign."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from tasks.unlearning.method import LearningMethod, Request, Strengths

if TYPE_CHECKING:
    from torch import Tensor

    from tasks.language_model.learners import Learner

_DEVIATION = 0.02


class Steering(LearningMethod):
    """h - strength W h for the last hidden states h; W, of low rank, is learned as h + W h on the text to forget.

    The paper also multiplies W by epsilon, which is part of the strength here.
    """

    title: ClassVar[str] = "LM-Steer"
    sentence: ClassVar[str] = "Steers the last hidden states away from those of the text to forget."
    kind: Literal["steering"]
    strengths: Strengths = Field(default=[0.25, 0.5, 1.0, 2.0, 4.0])
    """Factors by which the map is multiplied."""
    rank: int = Field(default=64, ge=1)

    def forgetting(self, request: Request) -> "Iterator[tuple[float, Learner]]":
        """See ``UnlearningMethod``."""
        down, up = self.learned(request)
        for strength in self.strengths:
            yield strength, request.start.steered(down, -strength * up)

    def learned(self, request: Request) -> "tuple[Tensor, Tensor]":
        """Learn the map; returns its factors, (D, R) and (R, D)."""
        import torch
        from torch.nn import Parameter
        from torch.nn.functional import cross_entropy

        from tasks.language_model.learners import batches
        from tasks.unlearning.steps import trained_steps

        model = request.start
        drawn = batches(request.forget, model.longest, self.batch_tokens, request.seed)
        with torch.no_grad():
            width = model.states(next(drawn)[0]).shape[1]
        generator = torch.Generator().manual_seed(request.seed)
        down = Parameter(_DEVIATION * torch.randn(width, self.rank, generator=generator))
        up = Parameter(torch.zeros(self.rank, width))

        def losses() -> "Iterator[Tensor]":
            batch, _ = next(drawn)
            with torch.no_grad():
                states = model.states(batch).float()
            yield cross_entropy(model.scores_of(states + (states @ down) @ up), batch.targets)

        for _ in trained_steps(model, losses, self.learning_rate, self.steps, [down, up]):
            pass
        return down.detach(), up.detach()
