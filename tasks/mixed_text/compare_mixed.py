"""Compare generated and real mixed-language text by how well a language model learns switches from it.

The command tests each text in three steps:

1. It adds a sample of the text's words, of equal size for all texts, to the lines of --base. Each of
   those lines is in one language.
2. It makes a trigram model with modified Kneser-Ney smoothing of the result.
3. It divides the model's perplexity on real test text by that of the model of --base alone.

The perplexity is over known words. It is measured at switch points, in mixed lines, and in lines of
one language. The words are drawn several times. Intervals are paired, over test lines and draws.

The report also has two references. One is random splices of lines in two languages, cut anywhere. A
useful text gives a lower perplexity than they do. The other is how often people switch (--people).

The report has numbers only.

Example:
  palimpsest compare-mixed --pair en,es --base spanish_and_english.txt --test test.txt --people real.txt \\
    --texts generated.txt
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from tasks.command import StageCommand, StageFiles
from tasks.errors import CorpusError
from tasks.options import READ
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.base import Settings
from tasks.settings.resources import ResourceSettings
from tasks.settings.seeds import Seed

if TYPE_CHECKING:
    import numpy as np

    from tasks.language_model.vocabulary import Vocabulary
    from tasks.languages.word_languages import WordLanguages

SUMMARY = "compare generated and real mixed-language text by what a language model learns from it"
_SPLICES, _SWITCHES, _SAMPLE = "random splices", "switch points", 20_000


class CompareMixedSettings(Settings):
    """Settings of the comparison of texts."""

    words: int | None = Field(default=None, ge=100)
    """Words that are added of each text; null: as many as the shortest text has."""
    vocabulary: int = Field(default=46_000, ge=1000)
    """Size of the public vocabulary: the most frequent words of the languages together."""
    order: int = Field(default=3, ge=2, le=5)
    """Words of the longest n-gram."""
    draws: int = Field(default=5, ge=1)
    """How often the words are drawn from each text."""
    bootstrap_samples: int = Field(default=1000, ge=100)
    """Resamples for the intervals."""
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    """Level of the intervals."""
    seed: Seed = 1
    """Seed of the draws, splices and resamples."""


class CompareMixedFiles(StageFiles):
    """Texts, one sentence a line."""

    pair: str
    """languages of the texts as ISO 639-1 codes, such as en,es"""
    base: Annotated[str, READ]
    """lines in one of the languages each, which all models learn from"""
    test: Annotated[str, READ]
    """real text that mixes the languages, to test the models on"""
    texts: Annotated[list[str], READ] = Field(min_length=1)
    """texts to compare; each is added alone"""
    people: Annotated[str | None, READ] = None
    """real text that mixes the languages: it is compared too, and its rate of switches is the reference"""


def compare_mixed(
    settings: CompareMixedSettings, files: CompareMixedFiles, cell: Cell, resources: ResourceSettings
) -> Report:
    """Train, test and compare; ``CorpusError`` if a text is empty or too short, or the test text has no switch."""
    import numpy as np

    from tasks.corpora.sources.published_frequencies import published_frequencies
    from tasks.corpora.text_lines import read_corpus
    from tasks.language_model.evaluation.bootstrap import percentile_interval, resampled_means
    from tasks.language_model.evaluation.by_language import targets_by_language
    from tasks.language_model.evaluation.reference_text import read_reference_text
    from tasks.language_model.evaluation.sentence_scores import SentenceSums
    from tasks.language_model.normalisation import normalise
    from tasks.language_model.vocabulary import SPECIAL_TOKENS, Vocabulary
    from tasks.languages.word_languages import WordLanguages
    from tasks.languages.word_lists import codes_of

    codes = codes_of(files.pair)
    base = read_corpus(files.base)
    texts = {path: read_corpus(path) for path in dict.fromkeys(filter(None, [files.people, *files.texts]))}
    lengths = {path: sum(len(normalise(line)) for line in lines) for path, lines in texts.items()}
    words = settings.words or min(lengths.values())
    for path, length in lengths.items():
        if length < words:
            raise CorpusError(f"text {path!r} has {length:,} words; {words:,} are to be added: lower 'words'")
    model = WordLanguages(
        codes, (line.split() for line in [*base[:_SAMPLE], *(line for lines in texts.values() for line in lines)])
    )
    texts[_SPLICES] = _spliced(base, model, words * settings.draws, settings.seed)
    known: dict[str, None] = {}
    for word, _ in sorted(published_frequencies(codes).items(), key=lambda each: (-each[1], each[0])):
        known |= dict.fromkeys(normalise(word))
        if len(known) >= settings.vocabulary:
            break
    vocabulary = Vocabulary([*SPECIAL_TOKENS, *known][: settings.vocabulary])
    reference = read_reference_text(files.test)
    scores, is_known = _scorer(settings.order, vocabulary, base, files.test)
    without = scores([])
    losses: dict[str, list[np.ndarray]] = {path: [] for path in texts}
    for draw in range(settings.draws):
        order = np.random.default_rng([settings.seed, draw])
        for path, lines in texts.items():
            losses[path].append(scores(_drawn(lines, words, order.permutation(len(lines)))) - without)
    groups = {name: chosen & is_known for name, chosen in targets_by_language(reference, codes).items()}
    if not groups[_SWITCHES].any():
        raise CorpusError(f"test text {files.test!r} has no switch point; give text that mixes languages")

    def ratios(changes: list["np.ndarray"]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, chosen in groups.items():
            of_draws = [
                SentenceSums.of_targets(each, reference.sentence, reference.sentences, chosen) for each in changes
            ]
            sums = np.stack([each.log_probability for each in of_draws], axis=1)[:, None]  # (S, 1, draws)
            targets = of_draws[0].targets[:, None].astype(np.float64)
            if targets.any():
                means = resampled_means(sums, targets, settings.bootstrap_samples, settings.confidence, settings.seed)
                found[name] = {
                    "ratio": float(np.exp(sums.mean(axis=2).sum() / targets.sum())),
                    "ratio_ci": percentile_interval(np.exp(means[:, 0]), settings.confidence),
                }
        return found

    measured = []
    of_people = _rate(model, texts[files.people]) if files.people else None
    for path, changes in losses.items():
        rate = _rate(model, texts[path])
        found = {
            "text": Path(path).name,
            "switch_rate": rate,
            "switch_rate_by_people": rate / of_people if of_people else None,
            "ratio": ratios(changes),
        }
        if path != _SPLICES:
            found["against_splices"] = ratios([a - b for a, b in zip(changes, losses[_SPLICES], strict=True)])
        measured.append(found)
        print(_shown(found), file=sys.stderr)
    switches = int(groups[_SWITCHES].sum())
    return Report(seed=settings.seed).measure(words_added=words, switch_points_tested=switches, by_text=measured)


def _scorer(
    order: int, vocabulary: "Vocabulary", base: Sequence[str], test: str
) -> "tuple[Callable[[Sequence[tuple[str, ...]]], np.ndarray], np.ndarray]":
    """A function of lines, and whether each target of the test text is in the vocabulary (N,).

    The function adds the lines to the base text, and returns the negative log-probability of each target of the test
    text by an n-gram model of both, in nats (N,).
    """
    from tasks.language_model.encoded_text import encode_text
    from tasks.language_model.language_models import encode_sentences
    from tasks.language_model.ngram.kneser_ney import estimate
    from tasks.language_model.normalisation import normalise
    from tasks.language_model.vocabulary import UNKNOWN_ID

    learned = [tuple(words) for line in base if (words := normalise(line))]
    tested = encode_text(test, vocabulary)
    is_target = tested.is_target()

    def scores(added: Sequence[tuple[str, ...]]) -> "np.ndarray":
        model, _ = estimate(encode_sentences([*learned, *added], vocabulary), order, len(vocabulary))
        return -model.log_probabilities(tested.tokens, tested.offsets)[is_target]

    return scores, tested.tokens[is_target] != UNKNOWN_ID


def _drawn(lines: Sequence[str], words: int, order: "np.ndarray") -> list[tuple[str, ...]]:
    """Lines in this order, until they have so many words; the last one is cut."""
    from tasks.language_model.normalisation import normalise

    found: list[tuple[str, ...]] = []
    for number in order:
        line = tuple(normalise(lines[number]))[:words]
        words -= len(line)
        found += [line] if line else []
        if not words:
            break
    return found


def _spliced(base: Sequence[str], model: "WordLanguages", words: int, seed: int) -> list[str]:
    """Lines of random splices: the beginning of a line in one language and the end of one in another."""
    import numpy as np

    from tasks.languages.mixing import spoken

    rng = np.random.default_rng(seed)
    of: dict[str, list[list[str]]] = {code: [] for code in model.languages}
    for line in model.tag(text.split() for text in base):
        if len(set(spoken(line.languages))) == 1:
            of[spoken(line.languages)[0]].append(line.words)
    if not all(of.values()):
        missing = ", ".join(code for code, lines in of.items() if not lines)
        raise CorpusError(f"the base text has no line in {missing}; it needs lines in each language")
    found = []
    while words > 0:
        one, other = rng.permutation(list(of))[:2]
        begin, end = (of[code][int(rng.integers(len(of[code])))] for code in (one, other))
        spliced = begin[: int(rng.integers(1, len(begin) + 1))] + end[int(rng.integers(len(end))) :]
        words -= len(spliced)
        found.append(" ".join(spliced))
    return found


def _rate(model: "WordLanguages", lines: Sequence[str]) -> float:
    """Switches per pair of words."""
    from tasks.languages.mixing import Mixing

    mixing = Mixing(model.languages)
    for line in model.tag(text.split() for text in lines):
        mixing.add(line.languages)
    return mixing.switches / max(mixing.pairs, 1)


def _shown(measured: dict[str, Any]) -> str:
    parts = []
    for name, of in (("at switches x", "ratio"), ("against random splices x", "against_splices")):
        if of in measured:
            found = measured[of][_SWITCHES]
            ends = found["ratio_ci"]
            parts.append(f"{name} {found['ratio']:.3f}" + (f" [{ends[0]:.3f}, {ends[1]:.3f}]" if ends else ""))
    of_people = measured["switch_rate_by_people"]
    rate = f"{measured['switch_rate']:.3f} switches a pair" + (f", {of_people:.2f} of people's" if of_people else "")
    return f"{measured['text']}: {'; '.join(parts)}; {rate}"


COMMAND = StageCommand(
    name="compare_mixed",
    stage=compare_mixed,
    settings=CompareMixedSettings,
    files=CompareMixedFiles,
    section={},
)
