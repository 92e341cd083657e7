"""The text that a filler is fine-tuned on: in-domain, without any private original, and less what is held out.

A masked corpus gives two kinds of text (paper 3.2): the sentences without any marker, or the whole corpus with its
markers filled by the filler as it is. What is held out is the same in both, in every round and with every seed, and is
shown to the model as the masked corpus has it, markers as mask tokens: only words that were never masked are guessed,
and no fill helps. Sentences that are equal to a held-out one in the masked corpus are not trained on either; corpora of
``palimpsest corpora`` have hardly any, since that leaves repeats out.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tasks.corpora.masked_text import count_markers, unescape
from tasks.errors import CorpusError, ParameterError
from tasks.filling.masked_sentence import MaskedSentence, read_masked_line

_HELD_OUT_SEED = 1
_MOST_HELD_OUT_TESTED = 2000
"""A test of so many sentences is exact enough; more may be held out."""
OPTIONS_OF_FILL = ("kept_words", "word_counts", "tuning_text", "generic_text")
"""Options of ``palimpsest fill`` that ``palimpsest tune-filler`` has too, for methods that need them."""
_NEEDS_SIDECAR = "restoration"
"""In the name of every number of a fill that only the sidecar tells."""


@dataclass(frozen=True)
class TuningText:
    """What to train on and what to test on."""

    lines: list[str]
    """Training text, unescaped, one sentence each."""
    held_out: list[MaskedSentence]
    """Sentences to test on, with slots where the corpus has markers."""
    measured: dict[str, Any]
    """Counts for the report."""


def tuning_text(
    masked: Sequence[str], settings: Any, fill: Callable[[], tuple[list[str], dict[str, Any]]]
) -> TuningText:
    """Divide a masked corpus; ``fill`` gives the filled lines and what was measured, and is called where they are used.

    ``settings``: of ``tuned_fillers``. Raises ``CorpusError`` where fewer sentences are left to train on than
    ``minimum_sentences``.
    """
    numbers = [number for number, line in enumerate(masked) if line.strip()]
    order = np.random.default_rng(_HELD_OUT_SEED).permutation(len(numbers)).tolist()
    aside = [numbers[index] for index in order[: max(1, round(settings.held_out_share * len(numbers)))]]
    held_out = set(aside)
    told = {masked[number] for number in aside}
    others = [number for number in numbers if number not in held_out]
    # What is told twice would be held out in name alone.
    training = [number for number in others if masked[number] not in told]
    repeats = len(others) - len(training)
    unmarked = [number for number in training if not count_markers(masked[number])]
    chosen = unmarked if settings.text == "unmasked" else training
    if len(chosen) < settings.minimum_sentences:
        raise CorpusError(_too_few(len(chosen), len(training), repeats, settings))
    measured: dict[str, Any] = {
        "corpus_sentences": len(numbers),
        "held_out_sentences": len(held_out),
        "held_out_repeats": repeats,
        "training_sentences": len(chosen),
        "sentences_with_markers_left_out": len(training) - len(chosen),
    }
    if settings.text == "filled":
        filled, of_the_fill = fill()
        measured |= of_the_fill
        lines = [filled[number] for number in chosen]
    else:
        lines = [unescape(masked[number]) for number in chosen]
    tested = sorted(aside[:_MOST_HELD_OUT_TESTED])
    sentences = [read_masked_line(masked[number], number + 1, merge_markers=True) for number in tested]
    return TuningText(lines, sentences, measured)


def _too_few(found: int, of: int, repeats: int, settings: Any) -> str:
    least = f"fewer than minimum_sentences={settings.minimum_sentences!r}"
    if repeats:
        least += f" ({repeats} more are equal to sentences that are held out)"
    if settings.text == "filled":
        return f"there are {found} sentences to train on, {least}; take a larger corpus, or lower minimum_sentences"
    return (
        f"{found} of the {of} sentences to train on have no marker, {least}; set text: filled (--text filled), which "
        "fills the whole corpus first, or lower minimum_sentences"
    )


def filled_by_base(arguments: argparse.Namespace, settings: Any, threads: int) -> tuple[list[str], dict[str, Any]]:
    """The whole corpus filled as ``palimpsest fill`` does it, without a sidecar, and all that its report would say.

    ``arguments`` are those of ``palimpsest tune-filler``. The filled text lies in a work folder and is removed in the
    end; a long fill that was interrupted goes on with what it had finished. Raises what ``WorkFolder`` does.
    """
    from tasks.corpora.text_lines import read_lines
    from tasks.files.work_folder import WorkFolder
    from tasks.filling import fill_stage

    folder = Path(arguments.work_folder or fill_stage.DEFAULT_WORK_FOLDER)
    work = WorkFolder(folder, arguments.output, "tuning")
    filled = work.path / "filled.txt"
    try:
        measured = fill_stage.fill_text(_fill_options(arguments, settings, filled, folder), settings.method, threads)
        lines = list(read_lines(filled))
    finally:
        work.remove()
    return lines, {name: value for name, value in measured.items() if _NEEDS_SIDECAR not in name}


def read_by_fill(arguments: argparse.Namespace, settings: Any) -> list[str]:
    """The files and folders besides masked text and base that the tuning reads: those that its fill does.

    Raises ``ParameterError`` where one of ``OPTIONS_OF_FILL`` is given and nothing is filled. A graph, which names its
    parameters by ``--params``, gives all tunings the same options: there they are not read.
    """
    from tasks.filling import fill_stage

    if settings.text == "filled":
        options = _fill_options(arguments, settings, arguments.output, fill_stage.DEFAULT_WORK_FOLDER)
        return fill_stage.read_beside(options, settings.method)
    given = [option.replace("_", "-") for option in OPTIONS_OF_FILL if getattr(arguments, option)]
    if given and not arguments.params:
        raise ParameterError(
            f"--{given[0]} is for filling, and text 'unmasked' fills nothing; leave it out, or add --text filled with "
            "--method"
        )
    return []


def _fill_options(
    arguments: argparse.Namespace, settings: Any, output: str | Path, folder: str | Path
) -> argparse.Namespace:
    """Options of ``palimpsest fill`` for the arguments of ``palimpsest tune-filler``."""
    from tasks.filling import fill_command

    parser = argparse.ArgumentParser()
    fill_command.configure(parser)
    given = {
        "input": arguments.input,
        "output": output,
        "method": settings.method.kind,
        "filler": arguments.base if settings.method.uses_filler else None,
        "seed": settings.seed,
        "work-folder": folder,
        **{option.replace("_", "-"): getattr(arguments, option) for option in OPTIONS_OF_FILL},
    }
    return parser.parse_args([f"--{option}={value}" for option, value in given.items() if value is not None])
