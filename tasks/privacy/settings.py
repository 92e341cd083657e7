"""Settings of releases: ``release`` in ``params.yaml``. They change no number, so no stage depends on them."""

from pydantic import Field

from tasks.settings.base import Settings


class ReleaseSettings(Settings):
    """What a release may give away."""

    epsilon_budget: float | None = Field(default=None, gt=0)
    """Largest sum of epsilons over all releases of a corpus, for one unit (a line or a document) of it. ``null``: no
    budget. With one, a cell whose fill has no epsilon (surrogates, ``forbid_original``, ``classes: match``) is not
    released."""
    other_keys: list[str] = Field(default_factory=list)
    """Ids of other keys (``data/private/keys``) by which words of these corpora were counted and released. Their counts
    have noise of their own, so that their epsilons add up; a key that is not named here is taken for a lost one."""
    at_most: dict[str, float] = Field(default={"exposure": 2.5})
    """Largest figures of the audit, by their names ('palimpsest advise --help' lists them), that a release may have by
    the upper ends of their intervals: exposure in bits, shares from 0 to 1. Those about models hold for a release with
    its model alone. 'palimpsest advise' goes by them too."""
    clear_share: float = Field(default=0.0, ge=0, le=1)
    """Largest share of the words that any tagger of ``masking`` calls private that may stand in clear in a release, for
    each class that its technique claims to mask."""
    license: str = "unknown"
    """For the cards of releases, as Hugging Face names it."""
    language: str = "en"
    """For the cards, by its ISO 639 code."""
