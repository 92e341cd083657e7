"""Which options of ``palimpsest fill`` the methods need that weigh words."""

import argparse
from typing import Any

from tasks.corpora.text_lines import refuse_stream
from tasks.errors import ParameterError


def needs_tuning_text(settings: Any) -> bool:
    """Whether a weight is to be learned, or the filler's average is used."""
    weights = settings.weights.model_dump()
    return None in weights.values() or weights["average"] != 0


def has_domain_prior(settings: Any) -> bool:
    """Whether a method takes words to be as frequent as in the private domain (``domain_frequencies``)."""
    return getattr(settings, "prior", None) in ("domain", "counted")


def counts_masked_words(settings: Any) -> bool:
    """Whether a method takes words to be as frequent as noisy counts of the masked ones say
    (``counted_frequencies``)."""
    return getattr(settings, "prior", None) == "counted"


def protects_documents(settings: Any) -> bool:
    """Whether a method counts masked words so that documents are protected, not lines, and has to know them."""
    return counts_masked_words(settings) and settings.counts.unit == "document"


def check_weighing(arguments: argparse.Namespace, settings: Any) -> None:
    """``ParameterError`` where an option is missing that the method needs, or one is given that it has no use for.

    ``--tuning-text`` and ``--generic-text`` may be given to every method, as word counts may: a graph gives all methods
    the same files.
    """
    method = arguments.method
    if has_domain_prior(settings):
        if not arguments.generic_text:
            raise ParameterError(
                f"method {method!r} with prior={settings.prior!r} weighs generic text; give --generic-text, such as "
                "data/generic/train.txt, or prior: word_counts"
            )
        refuse_stream(arguments.input, f"method {method!r} with prior={settings.prior!r} reads the masked text twice")
    if counts_masked_words(settings) and not arguments.sidecar:
        raise ParameterError(
            f"method {method!r} with prior='counted' counts what was masked; give --sidecar, or prior: domain"
        )
    if protects_documents(settings) and not arguments.documents:
        raise ParameterError(
            f"method {method!r} with counts.unit='document' protects all lines of a document together; give "
            "--documents, or unit: line"
        )
    if settings.kind != "log_linear":
        return
    refuse_causal(settings, arguments.filler)
    if not arguments.word_counts:
        raise ParameterError(f"method {method!r} needs --word-counts; 'palimpsest count-words' makes them")
    if needs_tuning_text(settings) and not arguments.tuning_text:
        raise ParameterError(
            f"method {method!r} learns its weights from generic text; give --tuning-text, or fix all its weights in "
            "params.yaml, average as 0"
        )
    if settings.prior_steps:
        refuse_stream(
            arguments.input,
            f"method {method!r} with prior_steps={settings.prior_steps!r} (not 0) reads the masked text twice",
        )


def refuse_causal(settings: Any, filler: str) -> None:
    """``ParameterError`` where the filler is a causal language model: it has no scores of whole words at a marker."""
    from tasks.filling.causal_lm.filler_folder import is_causal

    if is_causal(filler):
        raise ParameterError(
            f"method {settings.kind!r} needs a masked language model, and filler {filler!r} is a causal one; take "
            "top_1, top_k, sample or free, or a filler such as 'bert-base-uncased'"
        )
