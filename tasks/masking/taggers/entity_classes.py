"""Mapping from the entity types of models to the classes of markers.

The types are those of OntoNotes 5 (spaCy's English pipelines), CoNLL-2003 (BERT-NER), presidio and
``openai/privacy-filter``, in their usual spellings, and the default ones for GLiNER2. ``None`` leaves such words
unmasked: ordinals, quantities, percentages and languages name nobody.
"""

from collections.abc import Mapping

from tasks.corpora.masked_text import CLASSES, MASK
from tasks.errors import ModelError, ParameterError
from tasks.masking.settings import GLINER_TYPES
from tasks.spelling import nearest

_TYPES_OF_CLASS = {
    "PERSON": "PERSON PER TITLE private_person",
    "LOCATION": "FAC GPE LOC LOCATION STREET_ADDRESS ZIP_CODE CA_POSTAL_CODE UK_POSTCODE private_address",
    "ORGANISATION": "ORG ORGANIZATION ORGANISATION",
    "DATE": "DATE TIME DATE_TIME private_date",
    "NUMBER": "CARDINAL AGE",
    "MONEY": "MONEY",
    "CONTACT": "PHONE_NUMBER EMAIL_ADDRESS URL USER_NAME private_email private_phone private_url",
    "IDENTIFIER": """ABA_ROUTING_NUMBER AU_ABN AU_ACN AU_MEDICARE AU_TFN CA_SIN CREDIT_CARD CRYPTO IBAN_CODE
        IN_AADHAAR IP_ADDRESS MAC_ADDRESS MEDICAL_LICENSE NG_NIN PH_UMID SG_NRIC_FIN UK_DRIVING_LICENCE UK_NHS UK_NINO
        UK_PASSPORT US_BANK_NUMBER US_DRIVER_LICENSE US_ITIN US_MBI US_NPI US_PASSPORT US_SSN UUID ZA_ID_NUMBER
        account_number secret""",
    "GROUP": "NORP NRP",
    "WORK": "WORK_OF_ART LAW",
    "MISCELLANEOUS": "PRODUCT EVENT MISC",
}
ENTITY_CLASSES: Mapping[str, str | None] = {
    # Taggers of 'palimpsest train-tagger' have the classes themselves as types.
    **{name: name for name in CLASSES if name != MASK},
    **{entity_type: name for name, types in _TYPES_OF_CLASS.items() for entity_type in types.split()},
    **dict.fromkeys(("LANGUAGE", "ORDINAL", "PERCENT", "QUANTITY")),
    **GLINER_TYPES,
}
"""The mapping that ships with palimpsest."""


def classes_in_force(
    entity_types: list[str], labels: Mapping[str, str | None] | None, model: str
) -> dict[str, str | None]:
    """The class of every entity type of a model, ``None`` for types that stay unmasked.

    Raises ``ModelError`` if the mapping lacks a type of the model. Raises ``ParameterError`` if the user's mapping has
    an unknown class, or a type that the model lacks.
    """
    mapping = ENTITY_CLASSES if labels is None else labels
    unmapped = [entity_type for entity_type in entity_types if entity_type not in mapping]
    if unmapped:
        raise ModelError(
            f"{model}: the model tags {', '.join(map(repr, unmapped))}, and the mapping to marker classes has no such "
            f"type; set labels: in params.yaml to a class for each of {', '.join(entity_types)} "
            f"({', '.join(CLASSES)}, or null to keep such words)"
        )
    for entity_type, name in (labels or {}).items():
        if name is not None and name not in CLASSES:
            raise ParameterError(
                f"labels.{entity_type}: {name!r} is no class{nearest(name, CLASSES)}; "
                f"allowed: {', '.join(CLASSES)}, null"
            )
        if entity_type not in entity_types:
            raise ParameterError(
                f"labels.{entity_type}: the model {model!r} has no such type{nearest(entity_type, entity_types)}; "
                f"it has: {', '.join(entity_types)}"
            )
    return {entity_type: mapping[entity_type] for entity_type in entity_types}
