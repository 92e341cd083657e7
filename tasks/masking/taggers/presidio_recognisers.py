"""Recognisers in use: presidio's own for English, and ours for types and forms that those lack.

Importing presidio imports PyTorch and transformers; call ``tasks.torch_setup`` before.
"""

import re
from typing import TYPE_CHECKING, Any

from tasks.errors import ModelError
from tasks.masking.taggers.presidio_patterns import PATTERN_GROUPS

if TYPE_CHECKING:
    from presidio_analyzer import EntityRecognizer, RecognizerResult
    from presidio_analyzer.nlp_engine import NlpArtifacts

_COUNTRY_RECOGNISERS = (
    "AbaRoutingRecognizer",
    "AuAbnRecognizer",
    "AuAcnRecognizer",
    "AuMedicareRecognizer",
    "AuTfnRecognizer",
    "CaPostalCodeRecognizer",
    "CaSinRecognizer",
    "InAadhaarRecognizer",
    "NgNinRecognizer",
    "PhUmidRecognizer",
    "SgFinRecognizer",
    "UkDrivingLicenceRecognizer",
    "UkNinoRecognizer",
    "UkPassportRecognizer",
    "UkPostcodeRecognizer",
    "UsMbiRecognizer",
    "UsNpiRecognizer",
    "ZaIdNumberRecognizer",
)
"""Recognisers of English-speaking countries that presidio ships switched off, added to the 17 that are on: numbers with
a checksum or a form of their own. Left out are recognisers that match ordinary words, since presidio's patterns ignore
case: ``IN_PAN`` takes *government*, ``NG_VEHICLE_REGISTRATION`` *the 100th*, ``UK_VEHICLE_REGISTRATION`` *the 90s*."""

_FEWEST_PHONE_DIGITS = 7
_DIGITS_OF_A_CARD = r"(?<![\w\-])\d{12,19}(?![\w\-])"
TIME_STAMP = re.compile(r"1(?:\d{12}|\d{15}|\d{18})")
"""Milli-, micro- or nanoseconds since 1970; cards of so many digits begin otherwise."""
_ADDRESS = r"(?<![\w.+%@\-])(?=[\w.+%\-]*\p{L})[\w.+%\-]{1,64}@(?=[\w.\-]*\p{L})\w[\w\-]*+(?:\.\w[\w\-]*+)*+"
_HOST_LABELS = r"(?<![\w@.\-])(?:[a-z0-9](?:[a-z0-9\-]{0,61}[a-z0-9])?+\.){1,8}"
_OPEN_HOST = r"((www\d{0,3}[.])?[a-z0-9.\-]{1,253}[.]"
_PATH = r"(?:/[^\s()<>\"']*)?)"


def recognisers() -> "list[EntityRecognizer]":
    """Presidio's own recognisers for English, in its order, then those of other countries, then ours."""
    import regex
    from presidio_analyzer import Pattern, PatternRecognizer, RecognizerRegistry, predefined_recognizers

    registry = RecognizerRegistry(supported_languages=["en"])
    registry.load_predefined_recognizers(languages=["en"])
    replaced = {
        "CreditCardRecognizer": _card_recogniser,
        "EmailRecognizer": _email_recogniser,
        "PhoneRecognizer": _phone_recogniser,
        "UrlRecognizer": _url_recogniser,
    }
    defaults: Any = registry.recognizers
    chosen = [
        replaced[recogniser.name]() if recogniser.name in replaced else recogniser
        for recogniser in defaults
        if recogniser.name != "SpacyRecognizer"
    ]
    chosen += [getattr(predefined_recognizers, name)(supported_language="en") for name in _COUNTRY_RECOGNISERS]
    for group in PATTERN_GROUPS:
        recogniser = PatternRecognizer(
            supported_entity=group.entity_type,
            name=f"{group.entity_type.title().replace('_', '')}Patterns",
            patterns=[Pattern(pattern.name, pattern.expression, pattern.score) for pattern in group.patterns],
            context=list(group.context),
            global_regex_flags=regex.DOTALL,
        )
        chosen.append(recogniser)
    return chosen


def _card_recogniser() -> "EntityRecognizer":
    """A recogniser of cards with 12 to 19 digits and a checksum; presidio's own has 12 to 17 of some issuers."""
    from presidio_analyzer import Pattern
    from presidio_analyzer.predefined_recognizers import CreditCardRecognizer

    class CardRecogniser(CreditCardRecognizer):
        def validate_result(self, pattern_text: str) -> bool:
            return not TIME_STAMP.fullmatch(pattern_text) and super().validate_result(pattern_text)

    patterns = [*CreditCardRecognizer.PATTERNS, Pattern("12 to 19 digits", _DIGITS_OF_A_CARD, 0.3)]
    return CardRecogniser(patterns=patterns, name="CreditCardRecognizer")


def _email_recogniser() -> "EntityRecognizer":
    """Presidio's, with local domains: its own requires a public suffix, and downloads a list of them."""
    from presidio_analyzer import Pattern
    from presidio_analyzer.predefined_recognizers import EmailRecognizer

    class AnyDomainRecogniser(EmailRecognizer):
        def validate_result(self, pattern_text: str) -> bool:
            return True

    patterns = [*EmailRecognizer.PATTERNS, Pattern("Any domain", _ADDRESS, 0.5)]
    return AnyDomainRecogniser(patterns=patterns, name="EmailRecognizer")


def _phone_recogniser() -> "EntityRecognizer":
    """Presidio's, without numbers of fewer than seven digits: some towns have numbers of four digits."""
    from presidio_analyzer.predefined_recognizers import PhoneRecognizer

    class LongPhoneRecogniser(PhoneRecognizer):
        def analyze(
            self, text: str, entities: list[str], nlp_artifacts: "NlpArtifacts | None" = None
        ) -> "list[RecognizerResult]":
            found = super().analyze(text, entities, nlp_artifacts)  # type: ignore[arg-type]  # None is its default
            return [one for one in found if sum(map(str.isdecimal, text[one.start : one.end])) >= _FEWEST_PHONE_DIGITS]

    return LongPhoneRecogniser(name="PhoneRecognizer")


def _url_recogniser() -> "EntityRecognizer":
    """Presidio's, for whole domains only: its pattern has no end, and takes *this...is* for a URL."""
    from presidio_analyzer import Pattern
    from presidio_analyzer.predefined_recognizers import UrlRecognizer

    whole = UrlRecognizer.BASE_URL_REGEX
    if not (whole.startswith(_OPEN_HOST) and whole.endswith(_PATH)):
        raise ModelError("presidio-analyzer: this version writes its URL pattern in another way; install 2.2.366")
    host = rf"{_HOST_LABELS}{whole[len(_OPEN_HOST) : -len(_PATH)]}(?![a-z0-9\-])(?::\d{{1,5}})?+(?:/[^\s()<>\"']*+)?+"
    patterns = [
        Pattern("Standard Url", rf"(?i)https?://{host}", 0.6),
        Pattern("Non schema URL", rf"(?i){host}", 0.5),
    ]
    return UrlRecognizer(patterns=patterns, name="UrlRecognizer")
