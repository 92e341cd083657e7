"""Patterns that presidio lacks: addresses, postal codes, ages, titles, user names, UUIDs, telephone numbers.

Each pattern has a score, as presidio's have: at 0.35 or more it masks alone, below it needs a context word before it.
They are plain data, written for the ``regex`` package; ``presidio_recognisers`` makes recognisers of them.
"""

from dataclasses import dataclass

_CAPITALISED = r"\p{Lu}[\w'’.\-]*+"
_WORD = r"\p{L}[\w'’.\-]*+"
_GAP = r"[,.]?+[\s>]++"
_UNIT = r"(?:(?i:suite|ste|apt|apartment|flat|unit|room|box)\b\.?+\s?+\#?\d{1,5}[A-Za-z]?+\b)"
_HOUSE = r"\d{1,5}[A-Za-z]?+\b\.?+"
_ENGLISH_ENDING = (
    r"(?:Street|St|Avenue|Ave|Road|Rd|Boulevard|Blvd|Lane|Ln|Drive|Dr|(?<!(?:Supreme|District|Circuit|High)\s)Court|Ct|Place|Pl|Square|Sq|Terrace|Ter|Parkway"
    r"|Pkwy|Highway|Hwy|Way|Crescent|Cres|Circle|Cir|Close|Gardens|Grove|Mews|Row|Alley|Turnpike|Trail|Walk|Hill)\b\.?+"
)
_OTHER_ENDING = (
    r"(?:stra(?:ß|ss)e|str\.|gasse|weg|platz|allee|ufer|damm|gade|vej|stræde|veien|vegen|gata|gatan|gränd|vägen|väg"
    r"|straat|laan|plein|dijk|gracht|katu|tie|kuja|polku)"
)
_OTHER_BEGINNING = (
    r"(?i:rua|rúa|rue|ruelle|chemin|allée|via|viale|vicolo|piazza|piazzetta|piazzale|corso|strada|calle|avenida|av|avda"
    r"|avenue|plaza|paseo|travessa|praça|camino|carrer|ul|ulica|os|aleja|λεωφόρος|οδός)\b\.?+"
)
_PARTICLES = r"(?:(?:de|do|da|dos|das|du|des|del|della|dei|degli|di|la|le|les|los|las|el|al|van|von|der|e|y|et)\s++)"
_NAMES = rf"{_PARTICLES}*+{_CAPITALISED}(?:\s{_PARTICLES}*+{_CAPITALISED}){{0,4}}?"
_HUNGARIAN_ENDING = r"(?:utca|u\.|útja|út|tér|tere|köz|körút)"
_STREET = (
    rf"(?:{_HOUSE}\s++(?:{_CAPITALISED}\s++){{1,4}}?{_ENGLISH_ENDING}"
    rf"|{_HOUSE}\s++{_OTHER_BEGINNING}\s++(?:{_NAMES}(?!\s{_CAPITALISED})|{_PARTICLES}{_WORD})"
    rf"|{_OTHER_BEGINNING}\s++{_NAMES}\s++{_HOUSE}"
    rf"|\p{{Lu}}\w*{_OTHER_ENDING}\s++{_HOUSE}"
    rf"|(?:{_CAPITALISED}\s++){{1,3}}?{_HUNGARIAN_ENDING}\s++{_HOUSE})"
)
_REST = rf"(?:{_GAP}(?:{_CAPITALISED}[\s>]++){{0,3}}{_UNIT}){{0,2}}+"
_PLACES = rf"(?:{_GAP}(?!\d){_CAPITALISED}){{0,6}}?(?:{_GAP}\(?{_CAPITALISED}\)?)?"
_POSTAL_CODE = r"\d{4,6}(?:-\d{3,4})?+\b"
_STATES = (
    "AL|AK|AZ|AR|CA|CO|CT|DE|DC|FL|GA|HI|ID|IL|IN|IA|KS|KY|LA|ME|MD|MA|MI|MN|MS|MO|MT|NE|NV|NH|NJ|NM|NY|NC|ND|OH|OK|OR|PA|"
    "RI|SC|SD|TN|TX|UT|VT|VA|WA|WV|WI|WY|PR|GU|VI|AA|AE|AP"
)
_MONTHS = "(?:January|February|March|April|June|July|August|September|October|November|December)"
_YEAR = r"(?:1[5-9]|20)\d\d\b"
_AGE = r"(?:1[01]\d|[1-9]?\d)"
_UNTIL_BREAK = (
    r"(?=\s*+(?:[.,;:!?)\]]|$|(?:and|but|or|now|today|tomorrow|soon|next|this|in|on|when|last|years?|yrs?)\b))"
)
_PERSON_IS = r"(?:I['’]?m|I\sam|I\swas|(?:s?he|who)(?:['’]s|\sis|\swas)|my\s\w+\sis)"


@dataclass(frozen=True, slots=True)
class TextPattern:
    """One regular expression (case counts) and the score of what it matches."""

    name: str
    expression: str
    score: float


@dataclass(frozen=True, slots=True)
class PatternGroup:
    """The patterns of one entity type; a context word within five words before a match raises its score by 0.35."""

    entity_type: str
    patterns: tuple[TextPattern, ...]
    context: tuple[str, ...] = ()


PATTERN_GROUPS: tuple[PatternGroup, ...] = (
    PatternGroup(
        "STREET_ADDRESS",
        (
            TextPattern("street and house number", rf"(?<!\w)(?:\d{{1,5}}\s++)?{_STREET}{_REST}", 0.6),
            TextPattern(
                "street to postal code",
                rf"(?<!\w)(?:\d{{1,5}}\s++)?{_STREET}{_REST}{_PLACES}{_GAP}{_POSTAL_CODE}",
                0.7,
            ),
            TextPattern(
                "name, house number and unit",
                rf"(?<!\w)(?:\d{{1,6}}\s++)?{_CAPITALISED}\s++(?:{_WORD}\s++){{0,4}}?{_HOUSE}{_GAP}{_UNIT}{_REST}"
                rf"(?:{_PLACES}{_GAP}{_POSTAL_CODE})?+",
                0.7,
            ),
            TextPattern("unit to postal code", rf"(?<!\w){_UNIT}{_PLACES}{_GAP}{_POSTAL_CODE}", 0.6),
            TextPattern("unit", r"(?<!\w)(?i:suite|apt\.?|apartment|flat)\s\#?\d{1,5}[A-Za-z]?+\b", 0.5),
            TextPattern(
                "box",
                r"(?<!\w)(?i:p\.?\s?o\.?\s?box|postbox|post\soffice\sbox|po\sboxes)\s\#?\d{1,7}\b",
                0.8,
            ),
            TextPattern(
                "corner",
                rf"\b(?i:(?:the\s)?corner\sof)\s++(?:(?:{_CAPITALISED}|\d++|ul\.|av\.|de|do|da|del|u\.)\s++){{1,6}}?and\s++"
                rf"{_CAPITALISED}(?:\s{_CAPITALISED}){{0,3}}+(?:\s\d{{1,4}}\b)?+",
                0.6,
            ),
            TextPattern("military unit and box", r"(?<!\w)(?i:psc|unit|cmr)\s\d{1,5},?\s+(?i:box)\s\d{1,5}\b", 0.8),
            TextPattern(
                "military mail",
                r"(?<!\w)(?:(?i:uss|usns|uscgc|usnv)\s\w+\s+)?(?i:apo|fpo|dpo)\s(?i:aa|ae|ap)\s\d{5}(?:-\d{4})?+\b",
                0.9,
            ),
            TextPattern(
                "name and house number",
                rf"(?<![\w.])(?!{_MONTHS}\s)\p{{Lu}}\p{{L}}{{3,}}+\s(?!{_YEAR})\d{{1,4}}[A-Za-z]?+\b(?!\s?%)",
                0.05,
            ),
        ),
        ("address", "lives", "living", "resides", "residence", "located", "street", "corner"),
    ),
    PatternGroup(
        "ZIP_CODE",
        (
            TextPattern(
                "after zip or postal code",
                r"(?<=\b(?i:zip(?:\s?code)?|post(?:al)?\s?code)(?:\s(?i:is)\s|:\s?|\s))(?=[A-Z\d\- ]*\d)"
                r"(?:\d{4,6}(?:-\d{3,4})?+|[A-Z\d]{2,4}\s?\d[A-Z\d]{2})\b",
                0.8,
            ),
            TextPattern("after a state", rf"(?<=\b(?:{_STATES})\s{{1,2}})\d{{5}}(?:-\d{{4}})?+\b", 0.7),
        ),
    ),
    PatternGroup(
        "AGE",
        (
            TextPattern("years old", rf"\b{_AGE}(?=(?:\s|-)?(?i:y(?:ea)?rs?)(?:\s|-)(?i:old|of\sage)\b)", 0.8),
            TextPattern("y/o", rf"\b{_AGE}(?=\s?(?i:y/o|yo|y\.o\.)(?!\w))", 0.8),
            TextPattern("aged", rf"(?<=\b(?i:aged|ages?|age\sof|age:|age\sis)\s){_AGE}\b(?![%.,]\d)", 0.7),
            TextPattern("turned", rf"(?<=\b(?i:turn(?:ed|s|ing)?)\s){_AGE}\b{_UNTIL_BREAK}", 0.6),
            TextPattern("a person is", rf"(?<=\b(?i:{_PERSON_IS})\s){_AGE}\b{_UNTIL_BREAK}(?![.,]\d)", 0.6),
            TextPattern("age and sex", r"(?<=[(\[])\d{2}\s?[MFmf](?=[)\]])|(?<=[(\[][MFmf]\s?)\d{2}(?=[)\]])", 0.7),
        ),
    ),
    PatternGroup(
        "TITLE",
        (
            TextPattern(
                "before a name", r"\b(?:Mr|Mrs|Ms|Mx|Dr|Prof|MR|MRS|MS|DR)(?:\.(?=\s?\p{L})|(?=\s\p{Lu}\p{L}))", 0.6
            ),
            TextPattern("in lower case", r"\b(?:mr|mrs|ms|mx|dr|prof)\.(?=\s?\p{L})", 0.6),
        ),
    ),
    PatternGroup(
        "USER_NAME",
        (
            TextPattern("handle", r"(?<![\w@./])@[A-Za-z_]\w++", 0.6),
            TextPattern("reddit user", r"(?<![\w/])/?u/[\w\-]{3,20}+", 0.8),
            TextPattern(
                "after user name",
                r"""(?<=\b(?i:user\s?name|user\sid|login|screen\s?name|nickname)(?:\s(?i:is)\s|:\s?|\s?=\s?)["'“]?)"""
                r"[A-Za-z][\w.\-]{2,}+",
                0.7,
            ),
        ),
    ),
    PatternGroup(
        "UUID",
        (
            TextPattern(
                "of any version", r"(?<![\w-])[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}(?![\w-])", 0.6
            ),
        ),
    ),
    PatternGroup(
        "PHONE_NUMBER",
        (
            TextPattern(
                "groups of digits",
                rf"(?<![\w.,/\-])(?!{_YEAR}[ \-]{_YEAR})"
                r"(?=[+(]?(?:[ .\-()]{0,2}\d){7,15}(?!\d))\+?\(?\d{2,5}\)?(?:[ .\-]\d{2,6}){1,4}+"
                r"(?![\w/\-]|[.,]\d)",
                0.1,
            ),
        ),
        ("phone", "mobile", "call", "fax", "dial", "answer", "reach", "contact", "whatsapp"),
    ),
)
"""All groups; the telephone numbers are forms of no country that presidio's own recogniser knows."""
