"""Settings of releases: ``release`` in ``params.yaml``. They change no number, so no stage depends on them."""

from pydantic import Field

from tasks.settings.base import Settings


class ReleaseSettings(Settings):
    """Limits on a release, and fields of its card."""

    epsilon_budget: float | None = Field(default=None, gt=0)
    """Largest sum of epsilons over all releases of a corpus, for one unit (a line or a document) of it. ``null``: no
    budget. With one, a cell whose fill has no epsilon (surrogates, ``classes: match``) is not
    released."""
    other_keys: list[str] = Field(default_factory=list)
    """Ids of other keys (``data/private/keys``) by which words of these corpora were counted and released. Their counts
    have noise of their own, so their epsilons add up; a key that is not named here counts as lost."""
    unmasked_direct: float = Field(default=20.0, ge=0)
    """Largest number of unmasked direct identifiers per 1,000 lines, by the upper end of the 95 % interval. At 20, at
    most 2 lines in 100 hold on average a name, address or number of a person that was not masked."""
    at_most: dict[str, float] = Field(default={"reidentified": 0.1, "exposure": 2.5, "membership_tpr_1": 0.05})
    """Largest figures of the audit, by their names, by the upper ends of their intervals: exposure in bits, shares from
    0 to 1. Limits on figures of models apply only to a release with its model. The verdict uses them too."""
    license: str = "unknown"
    """License on the cards of releases, by Hugging Face's name."""
    language: str = "en"
    """Language on the cards, by its ISO 639 code."""
