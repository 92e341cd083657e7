"""What every section of ``params.yaml`` has in common: frozen, typed, unknown keys refused."""

from pydantic import BaseModel, ConfigDict


class Settings(BaseModel):
    """Base of all settings: immutable, strict about types, and no key that is not known."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True)
