"""Task arithmetic (Ilharco et al. 2023, "Editing Models with Task Arithmetic"): subtract the weight change of training
on the text to forget."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from tasks.unlearning.method import Request, Strengths, UnwantedMethod

if TYPE_CHECKING:
    from tasks.language_model.learners import Learner


class TaskArithmetic(UnwantedMethod):
    """Weights start - strength (unwanted - start)."""

    title: ClassVar[str] = "Task arithmetic"
    sentence: ClassVar[str] = "Subtracts the weight change of training on the text to forget."
    kind: Literal["task_arithmetic"]
    strengths: Strengths = Field(default=[0.25, 0.5, 1.0, 2.0])
    """Shares of the difference that are subtracted."""

    def forgetting(self, request: Request) -> "Iterator[tuple[float, Learner]]":
        """See ``UnlearningMethod``."""
        import torch

        unwanted = self.unwanted(request)
        # Weights that two layers share are one parameter, so they change once.
        changed = dict(unwanted.network.named_parameters())
        differences = {name: changed[name] - weights for name, weights in request.start.network.named_parameters()}
        for strength in self.strengths:
            model = request.start.copy()
            with torch.no_grad():
                for name, weights in model.network.named_parameters():
                    weights -= strength * differences[name]
            yield strength, model
