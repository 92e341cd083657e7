"""The fixed names under which MLflow holds the numbers of a cell."""

NUMBERS = (
    "perplexity",
    "perplexity_known",
    "perplexity_unknown",
    "perplexity_without_markers",
    "perplexity_masked",
    "perplexity_masked_known",
    "perplexity_rest_known",
    "bits_per_character",
    "oov_rate",
    "masked_fraction",
    "restoration_rate",
    "restoration_by_frequency",
    "ratio_to_oracle",
    "ratio_to_oracle_known",
    "ratio_to_oracle_masked_known",
    "ratio_to_oracle_rest_known",
    "ratio_to_baseline1",
    "ratio_to_baseline1_known",
    "ratio_to_baseline1_masked_known",
    "ratio_to_baseline1_rest_known",
    "gap_closed_known",
    "distinct_fills",
    "wer",
    "wer_masked",
    "character_error_rate",
    "insertions",
    "deletions",
    "substitutions",
    "utterances",
    "lm_weight",
    "insertion_bonus",
    "wer_difference_to_no_language_model",
    "wer_difference_to_pretrained",
    "wer_difference_to_oracle",
    "source_weight",
    "wer_insertion_bonus_alone",
    "wer_difference_to_insertion_bonus_alone",
    "wer_best_of_lists",
    "best_first_share",
)
"""Columns of the summary that are metrics; one with an interval has ``_low`` and ``_high`` too."""

OVER_SEEDS = tuple(
    f"{name}_{statistic}"
    for name in ("perplexity", "perplexity_known", "perplexity_masked_known", "bits_per_character", "wer")
    for statistic in ("mean", "deviation")
)
"""Mean and standard deviation over the seeds of a condition: every run of the condition has the same."""

TRAINING = {
    "training_seconds": "wall_seconds",
    "training_processor_seconds": "processor_seconds",
    "training_peak_memory_bytes": "peak_memory_bytes",
}
"""What training took: name of the metric, and field of the training's report."""

SYSTEM_PREFIX = "system/"
"""How the names of MLflow's own samples of the machine's load begin."""

CELL_METRICS = frozenset(name + end for name in NUMBERS for end in ("", "_low", "_high")) | {*OVER_SEEDS, *TRAINING}
"""Every metric of a cell; all others of its run are curves over optimiser steps, or the machine's load."""

CURVES = ("train_loss", "valid_loss", "valid_perplexity", "learning_rate")
"""Curves that a training report holds: losses in nats a target."""
