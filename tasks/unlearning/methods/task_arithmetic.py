"""Task arithmetic (Ilharco et al. 2023, "Editing Models with Task Arithmetic"): subtract what learning the text did to
the weights."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, field_validator

from tasks.unlearning.method import UnwantedMethod, rising

if TYPE_CHECKING:
    from tasks.language_model.learners import Learner
    from tasks.unlearning.request import Request


class TaskArithmetic(UnwantedMethod):
    """start - strength (unwanted - start), or with ``of: base``: start - strength (unwanted - base)."""

    title: ClassVar[str] = "Task arithmetic"
    sentence: ClassVar[str] = "Subtracts from the weights what training on the text to forget does to them."
    kind: Literal["task_arithmetic"]
    strengths: list[Annotated[float, Field(gt=0)]] = Field(default=[0.25, 0.5, 1.0, 2.0], min_length=1)
    """Shares of the difference that are subtracted."""

    _rising = field_validator("strengths")(rising)

    def forgetting(self, request: "Request") -> "Iterator[tuple[float, Learner]]":
        """As the class says."""
        import torch

        before, unwanted = self.unwanted(request)
        # Weights that two layers share are one parameter: they move once.
        changed = dict(unwanted.network.named_parameters())
        differences = {name: changed[name] - weights for name, weights in before.network.named_parameters()}
        for strength in self.strengths:
            model = request.start.copy()
            with torch.no_grad():
                for name, weights in model.network.named_parameters():
                    weights -= strength * differences[name]
            yield strength, model
