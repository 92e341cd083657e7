"""What the name of a filler, or of a method, says of fine-tuning; a summary has nothing but names."""

import re

_TUNED_PART = re.compile(r"_(?:fine_?tuned|tuned|ft|lora|rounds?)(?:_?\d+)?(?=_|$)", re.IGNORECASE)
_IN_DOMAIN_PART = re.compile(r"_(?:tuned|rounds?)(?:_?\d+)?(?=_|$)", re.IGNORECASE)


def pretrained_counterpart(name: str) -> str:
    """A filler's or method's name without the parts that say that the filler was fine-tuned; the same where none
    does."""
    return _TUNED_PART.sub("", name)


def is_tuned_in_domain(name: str) -> bool:
    """Whether a filler is one of ``tuned_fillers`` in ``params.yaml``, tuned on a masked corpus: ``minilm_tuned``.

    ``lora`` and ``ft`` alone may be a filler of ``fillers``, tuned on generic text.
    """
    return _IN_DOMAIN_PART.search(name) is not None
