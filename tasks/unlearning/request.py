"""What a language model has to forget, and by what it is kept from forgetting the rest."""

from dataclasses import dataclass

from tasks.language_model.learners import Learner, MarkedText


@dataclass(frozen=True)
class Request:
    """A model, what it has to forget, and what not."""

    start: Learner
    """The model that was trained on both; it stays as it is."""
    base: Learner
    """The model that it was adapted from, which has seen neither."""
    forget: MarkedText
    retain: MarkedText
    """Text that it was trained on too, and may know."""
    refilled: MarkedText | None
    """What is to be forgotten, with other words in the places of the private ones, in one copy or several."""
    seed: int
