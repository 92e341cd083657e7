"""What every section of ``params.yaml`` has in common: frozen, typed, unknown keys refused."""

from pydantic import BaseModel, ConfigDict


class Settings(BaseModel):
    """Base of all settings: immutable, strict about types, no key that is not known, and every number finite."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )
