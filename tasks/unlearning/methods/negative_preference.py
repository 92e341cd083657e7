"""Negative preference optimisation (Zhang et al. 2024, "Negative Preference Optimization: From Catastrophic Collapse to
Effective Unlearning", equation 3)."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from tasks.unlearning.method import GradientMethod, Request

if TYPE_CHECKING:
    from torch import Tensor

    from tasks.language_model.learners import Learner, PlacedBatch


class NegativePreference(GradientMethod):
    """-(2 / beta) log sigmoid(-beta log(p / p_start)) of each sentence: gradient ascent that ends by itself.

    Its gradient is the gradient of log p times 2 sigmoid(beta log(p / p_start)), which is 1 at the first step. Sums
    over sentences are divided by the targets of the batch, as in the loss on the text to retain. The paper divides by
    sentences, which makes the weight of that loss negligible.
    """

    title: ClassVar[str] = "NPO"
    sentence: ClassVar[str] = "Gradient ascent on the text to forget that ends by itself."
    kind: Literal["negative_preference"]
    beta: float = Field(default=0.1, gt=0)
    """How soon the ascent ends; as beta approaches 0 it becomes gradient ascent."""
    attack_steps: int = Field(default=0, ge=0)
    """Training steps that a simulated attacker takes on a few lines of the text to forget before each gradient on other
    lines. The gradient is computed on the attacked model, so the text remains forgotten after an attack (first order,
    after Tamirisa et al. 2025, "Tamper-Resistant Safeguards for Open-Weight LLMs"). 0: no attack."""
    attack_rate: float = Field(default=1e-3, gt=0)
    """Learning rate of the attack."""

    def weights(self, log_probability: "Tensor", before: "Tensor", sentence: "Tensor") -> "Tensor":
        """The weight (N,) of each target in the sum of -w log p, equal for all targets of a sentence.

        ``log_probability``, ``before``: of each target (N,) now and before the first step, in nats. ``sentence``: index
        of its sentence (N,), from 0.
        """
        import torch

        ratio = log_probability - before
        sums = torch.zeros(int(sentence.max()) + 1, dtype=ratio.dtype, device=ratio.device)
        sums.index_add_(0, sentence, ratio)  # (S,)
        return -2 * torch.sigmoid(self.beta * sums)[sentence]

    def forgetting(self, request: Request) -> "Iterator[tuple[float, Learner]]":
        """See ``UnlearningMethod``."""
        import torch

        from tasks.unlearning.steps import after_attack, gradient_steps

        before = request.start.log_probabilities(request.forget)

        def loss(model: "Learner", drawn: "PlacedBatch") -> "Tensor":
            batch, places = drawn
            own = model.log_probability(batch)
            weights = self.weights(own, torch.from_numpy(before[places]).to(own), batch.rows.to(own.device))
            return model.loss(batch, weights.to(own)) / len(batch.targets)

        def of_step(model: "Learner", drawn: "Iterator[PlacedBatch]") -> "Tensor":
            if self.attack_steps:
                return after_attack(loss, model, drawn, self.attack_rate, self.attack_steps)
            return loss(model, next(drawn))

        return gradient_steps(self, request, of_step)
