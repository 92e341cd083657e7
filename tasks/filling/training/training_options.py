"""Options that ``train-filler`` and ``tune-filler`` share: how a filler is trained."""

import argparse

TRAINING_OPTIONS = (
    "steps",
    "batch_pieces",
    "batch_sentences",
    "longest_sentence",
    "learning_rate",
    "warm_up_share",
    "masked_share",
    "rank",
    "alpha",
    "dropout",
    "target_modules",
    "merge",
    "seed",
)
"""Names of the settings that the options override."""


def add_training_options(parser: argparse.ArgumentParser, both: argparse._ArgumentGroup) -> argparse._ArgumentGroup:
    """Add the options of both kinds of filler to ``both``, and two groups for one kind each.

    Returns the group of the masked language model.
    """
    both.add_argument("--steps", type=int, help="optimiser steps")
    both.add_argument(
        "--longest-sentence",
        type=int,
        help="longer sentences are cut to so many pieces, or to what the model takes (causal: left out)",
    )
    both.add_argument("--learning-rate", type=float, help="peak learning rate (with a new head: the head's)")
    both.add_argument("--warm-up-share", type=float, help="share of the steps in which the rate rises")
    both.add_argument("--masked-share", type=float, help="share of the word pieces or words to guess")
    both.add_argument("--seed", type=int, help="seed of all that is drawn: order, masks, fresh weights, fills")
    masked = parser.add_argument_group("training of a masked language model")
    masked.add_argument("--batch-pieces", type=int, help="word pieces per step, padding included")
    lora = parser.add_argument_group("training of a causal language model, with LoRA")
    lora.add_argument("--batch-sentences", type=int, help="sentences per step")
    lora.add_argument("--rank", type=int, help="rank of the update of each matrix")
    lora.add_argument("--alpha", type=float, help="the update is scaled by alpha / rank")
    lora.add_argument("--dropout", type=float, help="share of the update's inputs that are left out at random")
    lora.add_argument(
        "--target-modules", nargs="+", metavar="LAYER", help="layers that are updated (default: all linear ones)"
    )
    lora.add_argument(
        "--merge",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="write whole weights with the update in them (default), or the update alone",
    )
    return masked


def given_options(arguments: argparse.Namespace, names: tuple[str, ...]) -> dict[str, object]:
    """The options of these names that were given."""
    return {name: value for name in names if (value := getattr(arguments, name)) is not None}
