"""Which language model belongs to a recogniser: told by the hash of its vocabulary."""

from collections.abc import Sequence

from tasks.errors import ModelError, SpeechError
from tasks.speech.rescoring.nbest_lists import NbestList

_HASH_DIGITS = 8


def expected_vocabulary(lists: Sequence[NbestList]) -> str | None:
    """Hash of the vocabulary that the lists name; ``SpeechError`` where they name several."""
    named = sorted({nbest.vocabulary for nbest in lists if nbest.vocabulary is not None})
    if len(named) > 1:
        raise SpeechError(
            f"the n-best lists name {len(named)} vocabularies ({', '.join(name[:12] for name in named[:4])}); "
            "rescore the lists of one recogniser at a time"
        )
    return named[0] if named else None


def check_vocabulary(vocabulary: str, expected: str | None, model: str) -> None:
    """``ModelError`` where the model's vocabulary is another one than expected; some first digits will do."""
    if expected is None:
        return
    if len(expected) < _HASH_DIGITS:
        raise ModelError(f"vocabulary hash {expected!r} is too short; give {_HASH_DIGITS} digits or more")
    if not vocabulary.startswith(expected):
        raise ModelError(
            f"model {model!r} has the vocabulary {vocabulary[:12]}, and the recogniser's partner has "
            f"{expected[:12]}; give the language model that belongs to the recogniser, or name this "
            "vocabulary with --vocabulary-hash"
        )
