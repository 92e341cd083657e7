"""Fill the markers of masked text with words.

Reads text with [MASK] (or class markers such as [PERSON]), one sentence a line, and writes the same lines with
one word in the place of each marker. Everything else in a line stays as it is. What a filler writes is not meant
to be the masked word but a substitute of its kind.

  --method top_1    the filler's best word; markers of a sentence are filled from left to right, or in another --order
  --method top_k    a random one of the K best words (--k), not one of the kept words if that can be
  --method sample   a draw from the filler's whole distribution over words that are not kept words
  --method free     a causal language model writes the whole sentence; what it gets wrong is filled by --method top_1
  --method unigram  no filler: a word that is no kept word, by its frequency in the word counts
  --method surrogate  no filler: a name for a name, a place for a place, other figures for figures, by the class of the
                    marker; with --sidecar of the same gender, kind and form, and the same one for the same word

Kept words are those that the masking technique never masks (--kept-words, written by 'palimpsest mask').

A long fill may be interrupted at any moment: the same command goes on with what was finished and writes the same bytes
as if nothing had happened. With several GPUs, --devices shares the lines among them; the result is the same.

With the sidecar (--sidecar, private) the report says how often a substitute is the very word that was masked, beside
what guessing by frequency would restore; --forbid-original keeps it from ever being so. That leaks a little: whoever
knows of it knows one word that was not masked at each place.

Example:
  palimpsest fill --input masked.txt --output filled.txt --filler bert-base-uncased --method top_k
"""

import argparse
import contextlib
import functools
import itertools
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from tasks.errors import ParameterError

SUMMARY = "fill the markers of masked text with a language model's words"
METHODS = ("top_1", "top_k", "sample", "free", "unigram", "surrogate")
DEFAULT_WORK_FOLDER = ".palimpsest/fills"
_OVERRIDES = (
    "classes",
    "consistent_within",
    "k",
    "temperature",
    "batch_sentences",
    "merge_markers",
    "forbid_original",
    "order",
)


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
        help="masked or causal LM: hub name, folder, or package:NAME/FOLDER; not for methods without a filler",
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
    parser.add_argument(
        "--devices",
        metavar="N",
        default="1",
        help="share the work among so many GPUs, or 'auto': all there are; without a GPU so many processes (default: "
        "1, the GPU if there is one)",
    )
    parser.add_argument(
        "--resume",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="go on with what an interrupted run of the same work has finished (default), or start anew; what is read "
        "from or written to a standard stream is never resumed",
    )
    parser.add_argument(
        "--work-folder",
        metavar="FOLDER",
        help=f"where finished parts lie until the output is complete; private (default: {DEFAULT_WORK_FOLDER})",
    )
    settings = parser.add_argument_group("settings", "override those of params.yaml or the defaults")
    settings.add_argument("--params", metavar="FILE", help="params.yaml of an experiment")
    settings.add_argument("--k", type=int, help="top_k: how many candidates (default: 10)")
    settings.add_argument("--temperature", type=float, help="sample: below 1 sharper, above 1 flatter (default: 1)")
    settings.add_argument(
        "--order",
        help="in which order a masked language model fills the markers of a sentence: left_to_right (default), "
        "all_at_once or most_confident_first",
    )
    settings.add_argument("--batch-sentences", type=int, help="sentences per forward pass (default: 64)")
    settings.add_argument(
        "--merge-markers",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="one word for a run of markers, as in the paper (default), or one for each",
    )
    settings.add_argument(
        "--classes",
        help="match: a fill has the class of its marker ([PERSON], or the sidecar's label), checked by a tagger; "
        "ignore (default)",
    )
    settings.add_argument(
        "--consistent-within",
        help="surrogate: the same word has the same surrogate within a line (default), or the whole corpus",
    )
    settings.add_argument(
        "--forbid-original",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="whether the masked word may never be its own substitute; needs --sidecar (default: it may)",
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
    from tasks.corpora.text_lines import STANDARD_STREAM, read_lines
    from tasks.filling.filled_corpus import FillingTally, read_shards
    from tasks.filling.filler_setup import corpus_filler
    from tasks.filling.kept_words import KeptWords
    from tasks.filling.restoration import Restoration
    from tasks.filling.shards.fill_key import fill_key
    from tasks.filling.shards.filled_shards import fill_corpus
    from tasks.filling.shards.shard_store import ShardStore
    from tasks.filling.shards.shard_workers import devices_of
    from tasks.params import as_plain
    from tasks.reports.cell import Cell
    from tasks.reports.stage_report import recorded_stage

    settings, threads = _settings(arguments)
    _check(arguments, settings)
    devices = devices_of(arguments.devices, uses_model=settings.uses_filler)
    optional = [path for path in (arguments.kept_words, arguments.word_counts, arguments.sidecar) if path]
    cell = Cell(
        arguments.dataset,
        arguments.technique,
        arguments.method,
        arguments.filler_name or arguments.filler,
        arguments.seed,
    )
    store: ShardStore | None = None
    with contextlib.ExitStack() as open_store:
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
            records = read_sidecar(arguments.sidecar) if arguments.sidecar else None
            shards = read_shards(read_lines(arguments.input), records)
            first = list(itertools.islice(shards, 2))
            several = len(first) > 1
            # One shard is all or nothing, so there is nothing to keep of it.
            if several and STANDARD_STREAM not in (arguments.input, arguments.output):
                key = fill_key(arguments, settings, threads, [arguments.input, *optional], report.inputs)
                store = ShardStore(
                    arguments.work_folder or DEFAULT_WORK_FOLDER, arguments.output, key, resume=arguments.resume
                )
                open_store.callback(store.close)
            tally = FillingTally(kept, Restoration(None) if arguments.sidecar else None)
            with _progress_bar() as advance:
                done = fill_corpus(
                    itertools.chain(first, shards),
                    arguments.output,
                    functools.partial(corpus_filler, arguments, settings, threads),
                    devices if several else devices[:1],
                    store,
                    tally,
                    advance,
                )
            restoration = tally.restoration
            report.measure(
                lines=tally.lines,
                markers=tally.markers,
                fills=tally.fills,
                fallback_count=tally.fallbacks,
                distinct_fills=len(tally.words),
                off_list_share=tally.off_list_share,
                kept_words=len(kept),
                candidate_words=tally.candidate_words,
                restoration_rate=restoration.rate if restoration else None,
                expected_restoration_by_frequency=restoration.expected_by_frequency if restoration else None,
                restoration=restoration.measured() if restoration else None,
                **tally.counts,
                **_class_match_rates(tally.counts),
                shards=done.shards,
                resumed_shards=done.resumed_shards,
                filling_seconds=round(done.seconds, 3),
                markers_per_second=round(done.markers / done.seconds, 1) if done.markers else None,
                forward_seconds=None if done.forward_seconds is None else round(done.forward_seconds, 3),
            )
            if tally.fills and tally.counts.get("class_slots") == 0:
                report.warn("no marker says its class: classes=match changed nothing; give --sidecar, or mask by class")
        if store is not None:
            # Only now: a run that ends before its report is written can still be resumed.
            store.remove()
    print(
        f"filled {tally.fills:,} places ({tally.markers:,} markers) in {tally.lines:,} lines with {len(tally.words):,} "
        f"different words in {done.seconds:.1f} s; {tally.fallbacks:,} against the off-list rule"
        + (f"; {done.resumed_shards:,} of {done.shards:,} shards were finished before" if done.resumed_shards else ""),
        file=sys.stderr,
    )


def _check(arguments: argparse.Namespace, settings: Any) -> None:
    """``ParameterError`` where options are missing that the method needs, or given that it does not use."""
    if settings.uses_filler and not arguments.filler:
        raise ParameterError(f"method {arguments.method!r} needs a filler; give --filler with a hub name or folder")
    if not settings.uses_filler and arguments.filler:
        raise ParameterError(f"method {arguments.method!r} uses no filler; leave --filler {arguments.filler!r} out")
    if settings.kind == "unigram" and not arguments.word_counts:
        raise ParameterError(f"method {arguments.method!r} needs --word-counts; 'palimpsest count-words' makes them")
    if settings.forbid_original and not arguments.sidecar:
        raise ParameterError(
            f"method {arguments.method!r}: forbid_original=True needs to know what was masked; give --sidecar, or "
            "leave forbid_original out"
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


def _class_match_rates(counts: Mapping[str, int]) -> dict[str, float | None]:
    """Shares of the slots with a class whose fill was of it, at the first choice and at the end; nothing where classes
    were not checked."""
    if "class_slots" not in counts:
        return {}
    slots = counts["class_slots"]
    return {
        "class_match_rate_first": counts["class_matches_first"] / slots if slots else None,
        "class_match_rate": counts["class_matches"] / slots if slots else None,
    }


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
