"""What the name of a filling method says of the stages that it goes through; a report has nothing but names."""


def is_downstream(name: str) -> bool:
    """Whether a method asks the downstream language model, and so waits for its pretraining: ``downstream_best``."""
    return name.startswith("downstream")
