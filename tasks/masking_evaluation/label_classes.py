"""Mapping from the labels of gold files to the classes of markers.

Labels of CoNLL-2003 and similar corpora (``PER``, ``LOC``, ``ORG``, ``MISC``), OntoNotes 5 (``GPE``, ``NORP``, ...),
WNUT 2017 (``person``, ``creative-work``, ...), presidio and its labelled data (``STREET_ADDRESS``, ``CREDIT_CARD``,
...), text from templates, and the marker classes themselves. A label is looked up unchanged, and then in capitals with
``_`` for ``-`` and space.

No label is ignored unless the user says so, not even those that taggers usually leave unmasked (ordinals, percentages):
the annotator wanted them found. A label without a class still counts as private wherever the class of a word does not
matter, and the report lists it.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import Field

from tasks.corpora.masked_text import CLASSES, MASK
from tasks.errors import ParameterError
from tasks.labelled_text.settings import LABEL_CLASSES as CLASSES_OF_GENERATED_TEXT
from tasks.masking.taggers.entity_classes import ENTITY_CLASSES
from tasks.settings.base import Settings, SourcePath
from tasks.settings.seeds import Seed
from tasks.spelling import nearest


class GoldSet(Settings):
    """A labelled text on which techniques are evaluated."""

    source: SourcePath
    """Labelled file: JSON lines ``{"text": "...", "spans": [{"start", "end", "label"}]}``."""
    labels: dict[str, str | None] | None = None
    """Marker classes by label of the file, where they differ from the shipped mapping. ``null`` as a class: such words
    are not private, and their spans are ignored and counted."""


class MaskingEvaluationSettings(Settings):
    """Gold sets by name, and settings of the confidence intervals."""

    gold_sets: dict[str, GoldSet] = Field(default_factory=dict)
    """Labelled texts by name."""
    bootstrap_samples: int = Field(default=1000, ge=100, le=100_000)
    """Resamples of the documents for the confidence intervals."""
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    """Level of the confidence intervals."""
    seed: Seed = 1
    """Seed of the resampling."""


_LABELS_OF_CLASS = {
    "PERSON": """PER PERSON NAME FIRST_NAME LAST_NAME FULL_NAME GIVEN_NAME SURNAME MIDDLE_NAME PREFIX TITLE""",
    "LOCATION": """LOC LOCATION GPE FAC FACILITY GEO_LOC ADDRESS STREET_ADDRESS STREET STREET_NAME BUILDING_NUMBER
        SECONDARY_ADDRESS CITY TOWN STATE COUNTY REGION COUNTRY ZIP ZIP_CODE ZIPCODE POSTCODE POSTAL_CODE COORDINATE
        AIRPORT""",
    "ORGANISATION": """ORG ORGANISATION ORGANIZATION COMPANY COMPANY_NAME CORPORATION HOSPITAL UNIVERSITY SCHOOL BANK
        TEAM SPORTS_TEAM""",
    "DATE": "DATE TIME DATE_TIME DATETIME DATE_OF_BIRTH DOB BIRTHDAY",
    "NUMBER": "NUMBER CARDINAL ORDINAL QUANTITY PERCENT AGE",
    "MONEY": "MONEY AMOUNT PRICE CURRENCY",
    "CONTACT": """CONTACT PHONE PHONE_NUMBER TELEPHONE TELEPHONE_NUMBER MOBILE FAX EMAIL E_MAIL EMAIL_ADDRESS URL
        DOMAIN DOMAIN_NAME WEBSITE USER_NAME USERNAME HANDLE SOCIAL_HANDLE""",
    "IDENTIFIER": """IDENTIFIER ID CODE CREDIT_CARD CREDIT_CARD_NUMBER CRYPTO IBAN IBAN_CODE SWIFT SWIFT_CODE BIC IP
        IP_ADDRESS MAC_ADDRESS SSN US_SSN US_ITIN US_PASSPORT US_DRIVER_LICENSE US_BANK_NUMBER US_LICENSE_PLATE
        UK_NHS UK_NINO BANK_ACCOUNT ACCOUNT_NUMBER ORDER_NUMBER PASSPORT PASSPORT_NUMBER DRIVER_LICENSE
        LICENSE_PLATE LICENCE_PLATE MEDICAL_LICENSE VEHICLE_ID VIN PASSWORD PIN""",
    "GROUP": "GROUP NORP NRP NATIONALITY RELIGION ETHNICITY",
    "WORK": "WORK WORK_OF_ART CREATIVE_WORK TVSHOW MOVIE LAW",
    "MISCELLANEOUS": "MISCELLANEOUS MISC PRODUCT EVENT LANGUAGE OTHER SPORT",
}

LABEL_CLASSES: Mapping[str, str] = {
    **{entity_type: name for entity_type, name in ENTITY_CLASSES.items() if name is not None},
    **CLASSES_OF_GENERATED_TEXT,
    **{label: name for name, labels in _LABELS_OF_CLASS.items() for label in labels.split()},
    # A "group" of WNUT 2017 is a band, a team or an association; a GROUP elsewhere is a people or a faith.
    "group": "ORGANISATION",
}
"""Shipped mapping: labels of corpora, of models and of generated text."""


@dataclass(frozen=True)
class LabelMapping:
    """Classes of a gold file's labels; the user's take precedence."""

    own: Mapping[str, str | None]
    """The user's mapping; ``None``: not private."""

    def class_of(self, label: str) -> str | None:
        """The marker class of a label; ``None`` if it has none or is not private."""
        if label in self.own:
            return self.own[label]
        return LABEL_CLASSES.get(label) or LABEL_CLASSES.get(label.upper().replace("-", "_").replace(" ", "_"))

    def is_private(self, label: str) -> bool:
        """Whether words of this label must be masked: all except those that the user declares not private."""
        return self.own.get(label, "") is not None

    def in_force(self, labels: Counter[str]) -> dict[str, str | None]:
        """The class of each label of a gold set that has one, or is not private (``None``)."""
        return {
            label: self.class_of(label)
            for label in sorted(labels)
            if not self.is_private(label) or self.class_of(label) is not None
        }

    def unmapped(self, labels: Counter[str]) -> dict[str, int]:
        """Labels of a gold set without a class, with their number of spans."""
        return {
            label: count
            for label, count in sorted(labels.items())
            if self.is_private(label) and self.class_of(label) is None
        }


def label_mapping(own: Mapping[str, str | None] | None, where: str) -> LabelMapping:
    """The mapping with the user's own classes; ``ParameterError`` for an unknown class, naming ``where``."""
    own = own or {}
    allowed = [name for name in CLASSES if name != MASK]
    problems = [
        f"{where}.{label}: {name!r} is no class{nearest(name, allowed)}"
        for label, name in own.items()
        if name is not None and name not in allowed
    ]
    if problems:
        raise ParameterError(f"{'; '.join(problems)}; allowed: {', '.join(allowed)}, or null for words not private")
    return LabelMapping(own)
