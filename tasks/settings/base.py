"""What every section of ``params.yaml`` has in common: frozen, typed, unknown keys refused."""

from pydantic import BaseModel, ConfigDict


class Settings(BaseModel):
    """Base of all settings: immutable, strict about types, no key that is not known, and every number finite."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


def refuse_out_of_order(settings: Settings, lower: str, upper: str) -> None:
    """Raise ``ValueError`` where one limit of a range, the field ``lower``, is above the other, ``upper``."""
    low, high = getattr(settings, lower), getattr(settings, upper)
    if low > high:
        raise ValueError(f"{lower} ({low!r}) is above {upper} ({high!r}); lower the one or raise the other")
