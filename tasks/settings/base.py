"""What every section of ``params.yaml`` has in common: frozen, typed, unknown keys refused."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict


class Settings(BaseModel):
    """Base of all settings: immutable, strict about types, no key that is not known, and every number finite."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


def _one_path(text: str) -> str:
    if not text.strip() or "\n" in text or "\0" in text:
        raise ValueError(f"a source is the path of a file or folder, not {text[:80]!r}")
    if ":" in text:
        raise ValueError(
            f"a source is a path without a colon, not {text!r}; fetch what is elsewhere into data/raw, and name that"
        )
    return text


SourcePath = Annotated[str, AfterValidator(_one_path)]
"""Path that a section of ``params.yaml`` names and ``dvc.yaml`` depends on; DVC takes a colon for a URL or a remote."""


def refuse_out_of_order(settings: Settings, lower: str, upper: str) -> None:
    """Raise ``ValueError`` where one limit of a range, the field ``lower``, is above the other, ``upper``."""
    low, high = getattr(settings, lower), getattr(settings, upper)
    if low > high:
        raise ValueError(f"{lower} ({low!r}) is above {upper} ({high!r}); lower the one or raise the other")
