"""Settings of generated labelled text: ``labelled_text`` in ``params.yaml``."""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field, model_validator

from tasks.made_up.pools import shipped_values
from tasks.settings.base import Settings, SourcePath
from tasks.settings.seeds import Seed
from tasks.spelling import nearest

LABEL_CLASSES: Mapping[str, str] = {label: name for label, name, _ in shipped_values("labels") if label != "-"}
"""Class, one of ``tasks.corpora.masked_text.CLASSES``, by fine label."""


class LearnFrom(Settings):
    """A labelled corpus whose sentences become templates."""

    source: SourcePath
    """Labelled file: JSON lines ``{"text", "spans"}``."""
    labels: dict[str, str] = Field(default_factory=dict)
    """Kind of slot by label of the corpus, for labels that are unknown or have another meaning."""


class LabelledTextSettings(Settings):
    """Settings of the amount, templates and form of the labelled text."""

    sentences: int = Field(default=20_000, ge=1)
    """Lines of all three parts together."""
    valid_share: float = Field(default=0.1, ge=0, lt=1)
    """Share of the templates, and of the lines, of the validation part."""
    test_share: float = Field(default=0.1, ge=0, lt=1)
    """Share of the templates, and of the lines, of the test part."""
    negative_share: float = Field(default=0.3, ge=0, le=1)
    """Share of the lines whose templates have no labelled slot."""
    joined_share: float = Field(default=0.2, ge=0, le=1)
    """Share of the lines with a second sentence, from another template of the same file, if the first sentence ends
    like one."""
    lower_case_share: float = Field(default=0.1, ge=0, le=1)
    """Share of the lines that are wholly lower-cased, as some users write."""
    upper_case_share: float = Field(default=0.01, ge=0, le=1)
    """Share of the lines that are all capitals."""
    unlabelled: list[str] = Field(default_factory=list)
    """Labels whose values are filled in but not labelled, such as ``USER_NAME``."""
    templates: Literal["shipped"] | list[str] = "shipped"
    """``shipped``: the templates of this package; otherwise template files."""
    learn_from: list[LearnFrom] = Field(default_factory=list)
    """Labelled corpora to learn more templates from."""
    seed: Seed = 1
    """Seed of every draw, but not of the division of templates and values, which never changes."""

    @model_validator(mode="after")
    def _fits(self) -> "LabelledTextSettings":
        if self.valid_share + self.test_share >= 1:
            raise ValueError("valid_share and test_share leave nothing to train on; their sum must be below 1")
        if self.lower_case_share + self.upper_case_share > 1:
            raise ValueError("lower_case_share and upper_case_share add up to more than 1")
        unknown = [label for label in self.unlabelled if label not in LABEL_CLASSES]
        if unknown:
            raise ValueError(
                "unlabelled: "
                + ", ".join(f"{label!r}{nearest(label, LABEL_CLASSES)}" for label in unknown)
                + f" is no label; allowed: {', '.join(LABEL_CLASSES)}"
            )
        if not self.templates and not self.learn_from:
            raise ValueError("no templates: name templates files, 'shipped', or a corpus to learn_from")
        return self
