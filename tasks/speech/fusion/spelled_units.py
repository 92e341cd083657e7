"""What the units of a recogniser spell: letters, and where words begin."""

from typing import Any

import numpy as np

from tasks.errors import ModelError

WORD_BEGIN = "\u2581"


class SpelledUnits:
    """Letters of each unit, and whether it begins a word."""

    def __init__(self, units: Any) -> None:
        """``units`` has ``pieces`` and ``decode`` (``tasks.speech.recogniser.units``).

        Raises ``ModelError`` where a unit reaches across two words.
        """
        self.letters = [str(units.decode([index])) for index in range(len(units.pieces))]
        self.begins = np.array(
            [
                piece.startswith(WORD_BEGIN) and (bool(letters) or piece == WORD_BEGIN)
                for piece, letters in zip(units.pieces, self.letters, strict=True)
            ]
        )
        self.has_letters = np.array([bool(letters) for letters in self.letters])
        across = sum(" " in letters for letters in self.letters)
        across += sum(WORD_BEGIN in piece[1:] for piece in units.pieces)
        if across:
            raise ModelError(
                f"{across} units of the recogniser reach across two words; a language model of words cannot be fused "
                "with it"
            )
