"""Fill the markers of masked text with words.

Reads text with [MASK] (or class markers such as [PERSON]), one sentence a line, and writes the same lines with
one word in the place of each marker. Everything else in a line stays as it is. What a filler writes is not meant
to be the masked word but a substitute of its kind.

  --method top_1    the filler's best word; several markers of a sentence are filled from left to right
  --method top_k    a random one of the K best words (--k), not one of the kept words if that can be
  --method sample   a draw from the filler's whole distribution over words that are not kept words
  --method unigram  no filler: a word that is no kept word, by its frequency in the word counts

Kept words are those that the masking technique never masks (--kept-words, written by 'palimpsest mask').

Example:
  palimpsest fill --input masked.txt --output filled.txt --filler bert-base-uncased --method top_k
"""

import argparse
import contextlib
import sys
import time
from collections.abc import Iterator
from typing import Any

from tasks.errors import ParameterError

SUMMARY = "fill the markers of masked text with a language model's words"
METHODS = ("top_1", "top_k", "sample", "unigram")
_OVERRIDES = ("k", "temperature", "batch_sentences", "merge_markers")


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--input", required=True, metavar="FILE", help="masked text, one sentence a line; '-': stdin")
    parser.add_argument("--output", required=True, metavar="FILE", help="where the filled text goes; '-': stdout")
    parser.add_argument(
        "--method",
        required=True,
        help=f"how a word is chosen: {', '.join(METHODS)}; with --params a name of the section 'filling'",
    )
    parser.add_argument(
        "--filler",
        metavar="MODEL",
        help="masked language model: hub name, folder, or package:NAME/FOLDER; not for methods without a filler",
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of the random methods (default: 1)")
    parser.add_argument("--kept-words", metavar="FILE", help="words that were never masked, one a line; empty: no list")
    parser.add_argument(
        "--word-counts",
        metavar="FILE",
        help="word<TAB>count of generic text: what unigram draws from, and how words are usually written",
    )
    parser.add_argument(
        "--sidecar", metavar="FILE", help="private record of what was masked: the report then counts restored words"
    )
    parser.add_argument("--report", metavar="FILE", help="write what was measured to this JSON file")
    parser.add_argument("--threads", type=int, help="threads of the model (default: resources.threads, else 1)")
    settings = parser.add_argument_group("settings", "override those of params.yaml or the defaults")
    settings.add_argument("--params", metavar="FILE", help="params.yaml of an experiment")
    settings.add_argument("--k", type=int, help="top_k: how many candidates (default: 10)")
    settings.add_argument("--temperature", type=float, help="sample: below 1 sharper, above 1 flatter (default: 1)")
    settings.add_argument("--batch-sentences", type=int, help="sentences per forward pass (default: 64)")
    settings.add_argument(
        "--merge-markers",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="one word for a run of markers, as in the paper (default), or one for each",
    )
    cell = parser.add_argument_group("cell", "what the report says it belongs to; changes no result")
    cell.add_argument("--dataset", help="name of the private corpus")
    cell.add_argument("--technique", help="name of the masking technique")
    cell.add_argument("--filler-name", help="name of the filler (default: --filler)")


def sections(arguments: argparse.Namespace) -> list[str]:
    """Key paths of ``params.yaml`` that the command reads."""
    return [f"filling.{arguments.method}"]


def run(arguments: argparse.Namespace) -> None:
    """Fill a corpus."""
    from tasks.corpora.sidecar import read_sidecar
    from tasks.corpora.text_lines import read_lines, write_lines
    from tasks.filling.filled_corpus import FillingTally, fill_lines
    from tasks.filling.kept_words import KeptWords
    from tasks.filling.restoration import Restoration
    from tasks.filling.word_frequencies import WordFrequencies
    from tasks.params import as_plain
    from tasks.reports.cell import Cell
    from tasks.reports.stage_report import recorded_stage

    settings, threads = _settings(arguments)
    if settings.uses_filler and not arguments.filler:
        raise ParameterError(f"method {arguments.method!r} needs a filler; give --filler with a hub name or folder")
    if not settings.uses_filler and arguments.filler:
        raise ParameterError(f"method {arguments.method!r} uses no filler; leave --filler {arguments.filler!r} out")
    if not settings.uses_filler and not arguments.word_counts:
        raise ParameterError(f"method {arguments.method!r} needs --word-counts; 'palimpsest count-words' makes them")
    optional = [path for path in (arguments.kept_words, arguments.word_counts, arguments.sidecar) if path]
    cell = Cell(
        arguments.dataset,
        arguments.technique,
        arguments.method,
        arguments.filler_name or arguments.filler,
        arguments.seed,
    )
    with recorded_stage(
        "fill",
        arguments.report,
        cell=cell.as_dict(),
        parameters=as_plain(settings),
        seed=arguments.seed,
        inputs=[arguments.input, *optional, *_folder_of(arguments.filler)],
        outputs=[arguments.output],
    ) as report:
        kept = KeptWords.read(arguments.kept_words)
        frequencies = WordFrequencies.read(arguments.word_counts) if arguments.word_counts else None
        filler, casing = _filler(arguments, settings, threads, kept, frequencies)
        tally = FillingTally(kept)
        restoration = None
        if arguments.sidecar:
            restoration = Restoration(frequencies.off_list_probabilities(kept) if frequencies else None)
        started = time.perf_counter()
        with _progress_bar() as advance:
            filled = fill_lines(
                read_lines(arguments.input),
                filler,
                casing,
                tally,
                merge_markers=settings.merge_markers,
                spans=read_sidecar(arguments.sidecar) if arguments.sidecar else None,
                restoration=restoration,
                advance=advance,
            )
            write_lines(arguments.output, filled)
        seconds = time.perf_counter() - started
        report.measure(
            lines=tally.lines,
            markers=tally.markers,
            fills=tally.fills,
            fallback_count=tally.fallbacks,
            distinct_fills=len(tally.words),
            off_list_share=tally.off_list_share,
            kept_words=len(kept),
            candidate_words=filler.candidate_count,
            restoration_rate=restoration.rate if restoration else None,
            expected_restoration_by_frequency=restoration.expected_by_frequency if restoration else None,
            filling_seconds=round(seconds, 3),
            markers_per_second=round(tally.markers / seconds, 1) if tally.markers else None,
            forward_seconds=None if filler.forward_seconds is None else round(filler.forward_seconds, 3),
        )
    print(
        f"filled {tally.fills:,} places ({tally.markers:,} markers) in {tally.lines:,} lines with {len(tally.words):,} "
        f"different words in {seconds:.1f} s; {tally.fallbacks:,} against the off-list rule",
        file=sys.stderr,
    )


def _settings(arguments: argparse.Namespace) -> tuple[Any, int]:
    """The method's settings with the options that override them, and the number of threads."""
    from tasks.filling.settings import FillingSettings
    from tasks.params import as_plain, check_settings, read_sections
    from tasks.spelling import nearest

    overrides = {name: value for name in _OVERRIDES if (value := getattr(arguments, name)) is not None}
    threads = 1
    if arguments.params:
        section = sections(arguments)[0]
        chosen = read_sections(arguments.params, [section, "resources"])
        values = as_plain(chosen[section])
        threads = chosen["resources"].threads
    elif arguments.method in METHODS:
        values = {"kind": arguments.method}
    else:
        raise ParameterError(
            f"--method {arguments.method!r} is not known{nearest(arguments.method, METHODS)}; "
            f"allowed: {', '.join(METHODS)}"
        )
    if arguments.threads is not None:
        threads = arguments.threads
    if threads < 1:
        raise ParameterError(f"--threads {threads!r} is not allowed; use 1 or more")
    return check_settings(FillingSettings, {**values, **overrides}, f"--method {arguments.method}"), threads


def _filler(arguments: argparse.Namespace, settings: Any, threads: int, kept: Any, frequencies: Any) -> tuple[Any, Any]:
    """The filler that the settings ask for, and how its words are cased."""
    from tasks.filling.casing import Casing, usual_forms
    from tasks.filling.marker_randomness import MarkerRandomness

    randomness = MarkerRandomness(arguments.seed)
    if not settings.uses_filler:
        from tasks.filling.unigram import UnigramFiller

        return (
            UnigramFiller(frequencies, kept.off_list(frequencies.words), randomness),
            Casing({}, filler_is_cased=True),
        )
    from tasks.torch_setup import set_up_torch

    set_up_torch(threads)
    from tasks.filling.candidate_words import candidate_words
    from tasks.filling.left_to_right import LeftToRightFiller
    from tasks.filling.masked_language_model import MaskedLanguageModel
    from tasks.filling.methods import choice_of

    model = MaskedLanguageModel.load(arguments.filler)
    candidates = candidate_words(
        model.tokenizer, name=arguments.filler, known_words=frequencies.folded() if frequencies else None
    )
    choice = choice_of(settings, kept.off_list(candidates.words), randomness)
    forms = usual_forms(zip(frequencies.words, frequencies.counts.tolist(), strict=True)) if frequencies else {}
    return (
        LeftToRightFiller(model, candidates, choice, batch_sentences=settings.batch_sentences),
        Casing(forms, filler_is_cased=candidates.cased),
    )


def _folder_of(filler: str | None) -> list[str]:
    """The filler's folder, whose content a report names; a hub name has none."""
    from pathlib import Path

    return [filler] if filler and Path(filler).is_dir() else []


@contextlib.contextmanager
def _progress_bar() -> Iterator[Any]:
    """A bar on standard error that counts fills; nothing where that is no terminal."""
    from tqdm import tqdm

    with tqdm(desc="filling", unit=" fills", unit_scale=True, disable=None, file=sys.stderr) as bar:
        yield bar.update
