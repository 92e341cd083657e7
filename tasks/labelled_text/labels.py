"""The labels that generated text carries, and the class of marker of each.

Generated files have the fine label: what learns from them can leave a kind of value out, or treat it on its own.
"""

from collections.abc import Mapping

LABEL_CLASSES: Mapping[str, str] = {
    "PERSON": "PERSON",
    "CITY": "LOCATION",
    "COUNTRY": "LOCATION",
    "STATE": "LOCATION",
    "REGION": "LOCATION",
    "FACILITY": "LOCATION",
    "STREET_ADDRESS": "LOCATION",
    "ZIP_CODE": "LOCATION",
    "ORGANISATION": "ORGANISATION",
    "TEAM": "ORGANISATION",
    "BAND": "ORGANISATION",
    "DATE": "DATE",
    "TIME": "DATE",
    "AGE": "NUMBER",
    "MONEY": "MONEY",
    "PHONE_NUMBER": "CONTACT",
    "EMAIL_ADDRESS": "CONTACT",
    "URL": "CONTACT",
    "USER_NAME": "CONTACT",
    "CREDIT_CARD": "IDENTIFIER",
    "IBAN": "IDENTIFIER",
    "SOCIAL_SECURITY_NUMBER": "IDENTIFIER",
    "PASSPORT_NUMBER": "IDENTIFIER",
    "DRIVING_LICENCE": "IDENTIFIER",
    "LICENCE_PLATE": "IDENTIFIER",
    "ACCOUNT_NUMBER": "IDENTIFIER",
    "ORDER_NUMBER": "IDENTIFIER",
    "IP_ADDRESS": "IDENTIFIER",
    "NATIONALITY": "GROUP",
    "BELIEF": "GROUP",
    "WORK": "WORK",
    "PRODUCT": "MISCELLANEOUS",
    "EVENT": "MISCELLANEOUS",
}
"""Fine label to class, one of ``tasks.corpora.masked_text.CLASSES``."""
