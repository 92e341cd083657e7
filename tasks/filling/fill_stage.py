"""One fill from its settings to the filled text and the report: what ``palimpsest fill`` does, and what a filler is
tuned on."""

import argparse
import contextlib
import functools
import itertools
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tasks.errors import ParameterError

if TYPE_CHECKING:
    from tasks.filling.frequencies.counted_frequencies import CountedFrequencies
    from tasks.filling.frequencies.word_frequencies import WordFrequencies

DEFAULT_WORK_FOLDER = ".palimpsest/fills"


def fill_text(arguments: argparse.Namespace, settings: Any, threads: int) -> dict[str, Any]:
    """Fill ``--input`` into ``--output`` by a method's settings, and return what was measured."""
    from tasks.corpora.sidecar import read_sidecar
    from tasks.corpora.text_lines import is_stream, read_lines
    from tasks.files.clone_key import clone_key
    from tasks.filling.filled_corpus import FillingTally, read_copies, read_shards
    from tasks.filling.filler_setup import corpus_filler, model_folders, secret_of_draws
    from tasks.filling.kept_words import KeptWords
    from tasks.filling.log_linear.options import counts_masked_words
    from tasks.filling.restoration import Restoration, Rounding
    from tasks.filling.shards.fill_key import fill_key
    from tasks.filling.shards.filled_shards import fill_corpus
    from tasks.filling.shards.shard_store import ShardStore
    from tasks.filling.shards.shard_workers import devices_of
    from tasks.filling.surrogates.surrogate import most_surrogates
    from tasks.records.cell import Cell
    from tasks.records.stage_report import recorded_stage
    from tasks.settings.checks import as_plain

    _check(arguments, settings)
    devices = devices_of(arguments.devices, uses_model=settings.uses_filler)
    optional = read_beside(arguments, settings)
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
            inputs=[arguments.input, *optional, *model_folders(arguments.filler)],
            outputs=[arguments.output],
        ) as report:
            kept = KeptWords.read(arguments.kept_words)
            secret = secret_of_draws(arguments, settings)
            prepared, learned = learn(arguments, settings, threads)
            report.measure(**learned)
            for_surrogates = _surrogates_of_documents(arguments, settings)
            # Where masked words were counted, only the noisy counts may say what they are, in the report too.
            sidecar = None if counts_masked_words(settings) else arguments.sidecar
            shards = read_copies(
                settings.copies,
                lambda: read_shards(
                    read_lines(arguments.input),
                    read_sidecar(sidecar) if sidecar else None,
                    read_lines(arguments.documents) if for_surrogates else None,
                ),
            )
            first = list(itertools.islice(shards, 2))
            several = len(first) > 1
            # One shard is all or nothing, so there is nothing to keep of it.
            if several and not any(map(is_stream, (arguments.input, arguments.output))):
                counted = learned.get("counted_frequencies")
                key = fill_key(arguments, settings, threads, [arguments.input, *optional], report.inputs, counted)
                store = ShardStore(
                    arguments.work_folder or DEFAULT_WORK_FOLDER, arguments.output, key, resume=arguments.resume
                )
                open_store.callback(store.close)
            tally = FillingTally(kept, Restoration(None, settings.copies) if sidecar else None)
            with _progress_bar() as advance:
                done = fill_corpus(
                    itertools.chain(first, shards),
                    arguments.output,
                    functools.partial(corpus_filler, arguments, settings, threads, secret, prepared),
                    devices if several else devices[:1],
                    store,
                    tally,
                    advance,
                )
            restoration, overall, counts = None, {}, {**tally.counts}
            if tally.restoration:
                rounded = Rounding(clone_key("restoration"), tally.as_plain())
                restoration = tally.restoration.measured(rounded)
                overall = restoration["overall"]
                # Who reads two reports would read a place off these too.
                counts |= {name: round(rounded(counts[name])) for name in counts if name.startswith("forbidden_")}
            report.measure(
                lines=tally.lines,
                markers=tally.markers,
                fills=tally.fills,
                fallback_count=tally.fallbacks,
                distinct_fills=len(tally.words),
                off_list_share=tally.off_list_share,
                kept_words=len(kept),
                candidate_words=tally.candidate_words,
                restoration_rate=overall.get("rate"),
                expected_restoration_by_frequency=overall.get("expected_by_frequency"),
                restoration=restoration,
                **counts,
                **_class_match_rates(tally.counts),
                shards=done.shards,
                resumed_shards=done.resumed_shards,
                filling_seconds=round(done.seconds, 3),
                markers_per_second=round(done.markers / done.seconds, 1) if done.markers else None,
                forward_seconds=None if done.forward_seconds is None else round(done.forward_seconds, 3),
            )
            if settings.kind == "surrogate" and arguments.sidecar:
                documents = read_lines(arguments.documents) if for_surrogates else None
                most = most_surrogates(settings, read_sidecar(arguments.sidecar), documents)
                report.measure(surrogates_of_one_original=most)
            if tally.fills and tally.counts.get("class_slots") == 0:
                unclassed = "no marker says its class: classes=match changed nothing; give --sidecar, or mask by class"
                _warn(report, unclassed)
            for warning in _beyond_one_copy(settings):
                _warn(report, warning)
        if store is not None:
            # Only now: a run that ends before its report is written can still be resumed.
            store.remove()
    print(
        f"filled {tally.fills:,} places ({tally.markers:,} markers) in {tally.lines:,} lines with {len(tally.words):,} "
        f"different words in {done.seconds:.1f} s; {tally.fallbacks:,} {_of_fallbacks(settings)}"
        + (f"; {done.resumed_shards:,} of {done.shards:,} shards were finished before" if done.resumed_shards else ""),
        file=sys.stderr,
    )
    return report.measured


def read_beside(arguments: argparse.Namespace, settings: Any) -> list[str]:
    """The files and folders that a fill reads besides masked text and filler; others may be given and are not read."""
    from tasks.filling.log_linear.options import has_domain_prior, protects_documents

    beside = [arguments.kept_words, arguments.word_counts, arguments.sidecar]
    if _surrogates_of_documents(arguments, settings) or protects_documents(settings):
        beside.append(arguments.documents)
    if settings.kind == "log_linear":
        beside.append(arguments.tuning_text)
    if has_domain_prior(settings):
        beside.append(arguments.generic_text)
    return [path for path in beside if path]


def learn(arguments: argparse.Namespace, settings: Any, threads: int) -> tuple[Any, dict[str, Any]]:
    """What a method learns before the first line, for ``corpus_filler``, and what the report says of it.

    ``None`` and nothing for methods that learn nothing.
    """
    from tasks.filling.frequencies.domain_frequencies import read_domain_frequencies
    from tasks.filling.log_linear.options import counts_masked_words, has_domain_prior

    prepared: Any = None
    measured: dict[str, Any] = {}
    if has_domain_prior(settings):
        domain = read_domain_frequencies(
            arguments.word_counts, arguments.input, arguments.generic_text, letters=counts_masked_words(settings)
        )
        measured["domain_frequencies"] = domain.measured()
        prepared = domain.frequencies
    if counts_masked_words(settings):
        counted = _count(arguments, settings, prepared)
        measured["counted_frequencies"] = counted.measured
        prepared = counted.frequencies
    if settings.kind == "log_linear":
        from tasks.filling.log_linear.preparation import prepare

        prepared = prepare(arguments, settings, threads, prepared)
        measured["log_linear"] = prepared.measured
    return prepared, measured


def _count(arguments: argparse.Namespace, settings: Any, before: "WordFrequencies") -> "CountedFrequencies":
    """The noisy counts of what was masked; ``ParameterError`` where too much of the corpus has left for them to."""
    from tasks.corpora.sidecar import read_sidecar
    from tasks.corpora.text_lines import read_lines
    from tasks.files.clone_key import clone_key, key_id, private_home
    from tasks.filling.filled_corpus import lines_with_spans
    from tasks.filling.frequencies.counted_frequencies import counted_frequencies
    from tasks.filling.frequencies.released_counts import refuse_lost
    from tasks.filling.frequencies.word_frequencies import WordFrequencies
    from tasks.filling.kept_words import KeptWords
    from tasks.filling.log_linear.options import protects_documents
    from tasks.parameters.parameter_file import read_sections
    from tasks.privacy.budget import check_budget, check_key
    from tasks.privacy.ledger import of_corpus, read_ledger
    from tasks.privacy.settings import ReleaseSettings

    allowed = read_sections(arguments.params, ["release"])["release"] if arguments.params else ReleaseSettings()
    before_this = of_corpus(read_ledger(), arguments.dataset)
    check_key(before_this, key=key_id(), other_keys=allowed.other_keys)
    counted = counted_frequencies(
        before,
        KeptWords.read(arguments.kept_words),
        lines_with_spans(read_lines(arguments.input), read_sidecar(arguments.sidecar)),
        settings.counts,
        clone_key("noise"),
        read_lines(arguments.documents) if protects_documents(settings) else (),
        public=WordFrequencies.read(arguments.word_counts, letters=True),
        of=(arguments.dataset, arguments.technique),
        home=private_home(),
    )
    counted.measured["key"] = key_id()
    refuse_lost(counted.measured, {release.counts for release in before_this})
    check_budget(
        before_this,
        counts=counted.measured["counts"],
        epsilon=settings.counts.epsilon,
        budget=allowed.epsilon_budget,
    )
    return counted


def _check(arguments: argparse.Namespace, settings: Any) -> None:
    """``ParameterError`` where options are missing that the method needs, or given that it does not use."""
    from tasks.corpora.text_lines import refuse_stream
    from tasks.files.atomic_file import refuse_folder
    from tasks.filling.log_linear.options import check_weighing

    # Not after hours, when everything is filled.
    refuse_folder(arguments.output)
    if settings.uses_filler and not arguments.filler:
        raise ParameterError(f"method {arguments.method!r} needs a filler; give --filler with a hub name or folder")
    if not settings.uses_filler and arguments.filler:
        raise ParameterError(f"method {arguments.method!r} uses no filler; leave --filler {arguments.filler!r} out")
    if settings.kind == "unigram" and not arguments.word_counts:
        raise ParameterError(f"method {arguments.method!r} needs --word-counts; 'palimpsest count-words' makes them")
    check_weighing(arguments, settings)
    _check_documents(arguments, settings)
    if settings.forbid_original and not arguments.sidecar:
        raise ParameterError(
            f"method {arguments.method!r}: forbid_original=True needs to know what was masked; give --sidecar, or "
            "leave forbid_original out"
        )
    if settings.copies > 1:
        refuse_stream(arguments.input, f"copies={settings.copies} reads it {settings.copies} times")


def _surrogates_of_documents(arguments: argparse.Namespace, settings: Any) -> bool:
    """Whether the same surrogate is to be written within a document; a graph gives every method the documents."""
    if settings.kind == "surrogate":
        return bool(settings.consistent_within == "document")
    return bool(arguments.documents) and settings.classes == "match" and not arguments.params


def _check_documents(arguments: argparse.Namespace, settings: Any) -> None:
    from tasks.filling.log_linear.options import protects_documents

    if _surrogates_of_documents(arguments, settings):
        for option in ("documents", "sidecar"):
            if not getattr(arguments, option):
                raise ParameterError(
                    f"the same surrogate within a document: --{option} is needed to know "
                    f"{'the document of each line' if option == 'documents' else 'what was masked'}; give it, or "
                    "leave --documents and consistent_within=document out"
                )
    elif arguments.documents and not arguments.params and not protects_documents(settings):
        raise ParameterError(
            "--documents is for surrogates that are the same within a document and for noisy counts that protect one, "
            f"and method {arguments.method!r} as it is set does neither; leave it out, or use --method surrogate "
            "without --consistent-within, --classes match, or --privacy-unit document"
        )


def _of_fallbacks(settings: Any) -> str:
    """What the places are that a method's own rule gave no word."""
    if settings.kind == "free":
        return f"in sentences that were handed over to fallback={settings.fallback!r}"
    return "against the off-list rule"


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


def _beyond_one_copy(settings: Any) -> Iterator[str]:
    """What several fills of one text say together (decisions 0038 and 0039)."""
    if settings.copies > 1 and settings.forbid_original:
        yield (
            f"each of {settings.copies} copies keeps clear of the masked word: a likely word that none of them writes "
            "is the more likely to be it"
        )


def _warn(report: Any, warning: str) -> None:
    """Say it in the report and to whoever runs the command, who may want no report."""
    report.warn(warning)
    print(f"warning: {warning}", file=sys.stderr)


@contextlib.contextmanager
def _progress_bar() -> Iterator[Any]:
    """A bar on standard error that counts fills; nothing where that is no terminal."""
    from tqdm import tqdm

    with tqdm(desc="filling", unit=" fills", unit_scale=True, disable=None, file=sys.stderr) as bar:
        yield bar.update
