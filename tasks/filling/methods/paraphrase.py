"""Differentially private paraphrases by a causal language model, as a competitor (not in the paper): DP-Prompt.

The model is given the private line and writes it anew, markers or not (Utpala et al. 2023, "Locally differentially
private document generation using zero shot prompting", section 4; Mattern et al. 2022, "The limits of word level
differential privacy", section 5). Every piece is drawn from

    P(piece)  proportional to  exp(clip(logit, top - width, top) / temperature),

the exponential mechanism with a logit's sensitivity of ``width``, so that a piece costs 2 width / temperature, and a
line at most ``most_pieces`` of these: any other line would have given the same paraphrase with a probability that is no
more than exp(epsilon) times smaller. That is epsilon of a whole line in the usual sense, and it is large: for a piece
of a vocabulary of V to be other than chance, width / temperature has to be above log V, some 11.

Departures: the window of the clip is no constant of the user's. ``top`` is the mean of the largest logit behind the
prompts of made-up sentences, which no private text touches. Epsilon is stated of the longest paraphrase, since where it
ends is drawn too. Draws are made of the secret of the clone and of the sidecar, in floating point.
"""

from __future__ import annotations

import hmac
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from tasks.errors import ParameterError
from tasks.filling.settings import FillingMethod

if TYPE_CHECKING:
    import numpy as np

    from tasks.filling.causal_lm.language_model import CausalLanguageModel
    from tasks.filling.causal_lm.rows import CausalRows
    from tasks.filling.context import FillContext
    from tasks.filling.fill import FillFiles
    from tasks.filling.filled_corpus import BuiltFiller
    from tasks.filling.marker_randomness import MarkerRandomness
    from tasks.filling.masked_sentence import Fill, MaskedSentence

_BEFORE, _BEHIND = "Document: ", "\nParaphrase of the document:"
"""DP-Prompt's own words."""
_ROWS = 32


class Paraphrase(FillingMethod):
    """A causal language model writes each private line anew, every piece by the exponential mechanism."""

    title: ClassVar[str] = "DP paraphrase"
    sentence: ClassVar[str] = (
        "A causal model writes the private line anew with clipped logits (DP-Prompt); not in the paper."
    )
    fillers: ClassVar[tuple[str, ...]] = ("causal_lm",)
    returns_originals: ClassVar[bool] = True
    rewrites_lines: ClassVar[bool] = True
    kind: Literal["paraphrase"]
    temperature: float = Field(default=1.0, gt=0)
    """Of the draw of each piece."""
    width: float = Field(default=20.0, gt=0)
    """Of the window that logits are clipped to."""
    most_pieces: int = Field(default=32, ge=1, le=512)
    """A paraphrase is cut behind so many pieces."""
    copies: Literal[1] = 1
    """Each would cost as much again."""

    @property
    def epsilon(self) -> float:
        """Of a line."""
        return self.most_pieces * 2 * self.width / self.temperature

    @property
    def follows_originals(self) -> bool:
        """Always: it reads the private line."""
        return True

    def check(self, files: FillFiles) -> None:
        """What the private line is put together from."""
        super().check(files)
        if not files.sidecar:
            raise ParameterError("method 'paraphrase' reads the private lines; give --sidecar")

    def build(self, context: FillContext) -> BuiltFiller:
        """With the model of the filler; nothing is cased."""
        from tasks.files.clone_key import clone_key
        from tasks.filling.filled_corpus import BuiltFiller
        from tasks.filling.marker_randomness import MarkerRandomness

        # Other settings draw anew, as for ``metric``.
        drawn = context.secret + self.model_dump_json().encode()
        secret = hmac.digest(clone_key("paraphrase"), drawn, "sha256")
        filler = Paraphraser(context.model.causal, self, MarkerRandomness(context.seed, secret))
        return BuiltFiller(filler, context.casing(is_cased=True))

    def measured(self, context: FillContext) -> dict[str, Any]:
        """What is promised of a line."""
        return {"epsilon_of_a_line": self.epsilon}


class Paraphraser:
    """Writes lines anew with one causal language model."""

    candidate_count = 0
    """It writes pieces, no words."""

    def __init__(self, model: CausalLanguageModel, settings: Paraphrase, randomness: MarkerRandomness) -> None:
        from tasks.corpora.text_lines import read_lines
        from tasks.filling.causal_lm.rows import ForwardClock
        from tasks.filling.examples import SENTENCES

        self._model, self._settings, self._randomness = model, settings, randomness
        self._clock = ForwardClock()
        self.counts = Counter(paraphrase_pieces=0, paraphrases_cut=0)
        """Pieces that were drawn, and lines that had no end behind ``most_pieces``."""
        prompts = self._prompts(list(read_lines(SENTENCES)))
        largest = self._rows(len(prompts)).read(prompts, [1] * len(prompts)).max(dim=1).values
        self.top = float(largest.mean())
        """Of the window that logits are clipped to."""

    @property
    def forward_seconds(self) -> float:
        """Seconds inside the model so far."""
        return self._clock.seconds

    def fill(self, sentences: Sequence[MaskedSentence], advance: Callable[[int], object]) -> list[list[Fill]]:
        """No fills: lines are written whole."""
        return [[] for _ in sentences]

    def rewrite(self, lines: Sequence[str], numbers: Sequence[int], advance: Callable[[int], object]) -> list[str]:
        """A paraphrase of each private line; chance is that of its number in the corpus."""
        prompts = self._prompts(lines)
        written = [""] * len(lines)
        by_length = sorted(range(len(lines)), key=lambda row: len(prompts[row]))
        for start in range(0, len(lines), _ROWS):
            chosen = by_length[start : start + _ROWS]
            texts = self._write([prompts[row] for row in chosen], [numbers[row] for row in chosen])
            for row, text in zip(chosen, texts, strict=True):
                written[row] = text
            advance(len(chosen))
        return written

    def probabilities(self, logits: np.ndarray) -> np.ndarray:
        """``(..., V)`` of each piece."""
        import numpy as np

        settings = self._settings
        inside = (logits.astype(np.float64).clip(self.top - settings.width, self.top) - self.top) / settings.temperature
        weights = np.exp(inside)
        return np.asarray(weights / weights.sum(axis=-1, keepdims=True))

    def _write(self, prompts: Sequence[list[int]], numbers: Sequence[int]) -> list[str]:
        import numpy as np

        from tasks.filling.marker_randomness import Place

        rows, active = self._rows(len(prompts)), list(range(len(prompts)))
        pieces: list[list[int]] = [[] for _ in prompts]
        unread = list(prompts)
        for step in range(self._settings.most_pieces):
            logits = rows.read(unread, [1] * len(unread)).cpu().numpy()  # (B, V)
            cumulated = self.probabilities(logits).cumsum(axis=1)
            for place, row in enumerate(active):
                ticket = self._randomness.at(Place(numbers[row], 0), step=step).random() * cumulated[place, -1]
                pieces[row].append(int(np.searchsorted(cumulated[place], ticket, side="right")))
            self.counts["paraphrase_pieces"] += len(active)
            going_on = [place for place, row in enumerate(active) if not self._ended(pieces[row])]
            if not going_on:
                break
            if len(going_on) < len(active):
                rows, active = rows.chosen(going_on), [active[place] for place in going_on]
            unread = [pieces[row][-1:] for row in active]
        self.counts["paraphrases_cut"] += sum(not self._ended(each) for each in pieces)
        return [self._text(each) for each in pieces]

    def _ended(self, pieces: Sequence[int]) -> bool:
        return pieces[-1] == self._model.end or "\n" in self._model.decode(pieces).lstrip()

    def _text(self, pieces: Sequence[int]) -> str:
        """The first line that was written, all white space as single spaces."""
        return " ".join(self._model.decode(pieces).lstrip().partition("\n")[0].split())

    def _prompts(self, lines: Sequence[str]) -> list[list[int]]:
        """Of a line that is too long its beginning."""
        before, behind = self._model.encode([_BEFORE, _BEHIND])
        room = self._model.positions - self._settings.most_pieces - len(before) - len(behind) - len(self._model.start)
        encoded = self._model.encode(list(lines))
        return [[*self._model.start, *before, *pieces[: max(0, room)], *behind] for pieces in encoded]

    def _rows(self, count: int) -> CausalRows:
        from tasks.filling.causal_lm.rows import CausalRows

        return CausalRows(self._model, count, self._clock)
