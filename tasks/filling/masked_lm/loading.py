"""Loading of masked language models."""

from collections.abc import Sequence
from typing import Any

import torch

from tasks.errors import ModelError
from tasks.filling.fillers.filler_folder import apply_update, base_of_update
from tasks.model_source import check_model_folder, locate_model, unreachable


def load_masked_model(name: str) -> tuple[Any, Any, list[str]]:
    """Model, tokenizer and the names of the missing weights (the head's, if the source has only a body).

    Raises ``ModelError`` as ``MaskedLanguageModel.load``.
    """
    source = locate_model(name)
    base = base_of_update(source)
    if base is not None:
        model, tokenizer, fresh = load_masked_model(base)
        apply_update(model, fresh, source)
        return model, tokenizer, []
    check_model_folder(source, name)
    import transformers
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    # Palimpsest's errors and reports have the content of its messages (fresh weights, long sentences).
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    try:
        tokenizer = AutoTokenizer.from_pretrained(source)
        model, information = AutoModelForMaskedLM.from_pretrained(source, output_loading_info=True, dtype=torch.float32)
    except Exception as error:
        # Damaged files raise different exceptions for each format; the reason is in the message.
        if isinstance(error, ValueError) and "Unrecognized configuration class" in str(error):
            raise ModelError(
                f"model {name!r} is no masked language model, but of another kind (such as a causal one); "
                "take a masked one such as 'bert-base-uncased' or 'roberta-base'"
            ) from None
        raise unreachable(name, error) from error
    if getattr(model.config, "is_decoder", False) and not model.config.is_encoder_decoder:
        raise ModelError(
            f"model {name!r} is set up as a decoder (is_decoder in config.json): it sees only the text before a marker;"
            " take a masked language model, or set is_decoder to false"
        )
    return model, tokenizer, sorted(information["missing_keys"])


def headless(what: str, name: str, missing: Sequence[str]) -> ModelError:
    """The error for a model that lacks its masked-LM head."""
    return ModelError(
        f"{what} {name!r} has no masked-LM head ({len(missing)} weights are missing, such as {missing[0]!r}); "
        "train one with 'palimpsest train-filler' (train_head) and give its output folder"
    )
