"""A corpus filled shard by shard, in order: from an earlier run, by this process, or by one process per device.

A fill may be interrupted: the next run goes on where this one ended. Finished shards lie in a ``WorkFolder``, in
``.palimpsest/fills`` unless told otherwise, under a key (``fill_key``) of everything that decides the result; a shard
of another key is never used. A shard is one file, complete or not there. Filled text may still hold private words that
were not masked, so files have mode 0600 and folders 0700.
"""

import contextlib
import hashlib
import itertools
import json
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from tasks.corpora.sidecar import read_sidecar
from tasks.corpora.text_lines import empty_text, is_stream, read_documents, write_lines
from tasks.errors import CorpusError
from tasks.files.atomic_file import atomic_writer
from tasks.files.clone_key import clone_key
from tasks.files.work_folder import LOCK, WorkFolder
from tasks.filling.context import FillContext
from tasks.filling.fill import DEFAULT_WORK_FOLDER, FillFiles
from tasks.filling.filled_corpus import CorpusFiller, FilledShard, FillingTally, Shard, read_copies, read_shards
from tasks.filling.fillers.filler_folder import base_of
from tasks.filling.restoration import Restoration, Rounding
from tasks.filling.settings import ClassAware
from tasks.filling.shard_workers import Device, ShardWorkers
from tasks.model_source import locate_model
from tasks.records.stage_report import content_hash
from tasks.settings.checks import as_plain
from tasks.settings.resources import ResourceSettings

_LIBRARIES = (
    "palimpsest numpy torch transformers tokenizers peft faker regex spacy presidio-analyzer python-crfsuite".split()
)
_PACKAGE = Path(__file__).parents[1]
_AHEAD_PER_DEVICE = 4
"""So many shards per device may wait for their turn behind one that is slow: a bound on memory."""


class ShardStore:
    """The finished shards of one fill; nobody else uses them while it is open."""

    def __init__(self, work_folder: str | Path, output: str | Path, key: str, *, resume: bool) -> None:
        """Open or make the folder; without ``resume`` what an earlier run left in it is removed.

        Raises what ``WorkFolder`` does.
        """
        self._work = WorkFolder(work_folder, output, key)
        self.folder = self._work.path
        for file in self.folder.iterdir():
            # What a process that was killed was writing at that moment.
            if file.name != LOCK and (file.suffix != ".shard" or not resume):
                file.unlink()

    def load(self, index: int) -> FilledShard | None:
        """A finished shard, or ``None`` where there is none."""
        try:
            record = json.loads(self._path(index).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        return FilledShard(index, record["lines"], record["tally"], resumed=True)

    def save(self, shard: FilledShard) -> None:
        """Write a shard: after this call it will not be computed again."""
        with atomic_writer(self._path(shard.index), private=True) as stream:
            json.dump({"lines": shard.lines, "tally": shard.tally}, stream)

    def lines(self, shards: int) -> Iterator[str]:
        """The filled lines of so many shards from the first on."""
        for index in range(shards):
            yield from json.loads(self._path(index).read_text(encoding="utf-8"))["lines"]

    def remove(self) -> None:
        """Remove the folder: the output is complete."""
        self._work.remove()

    def close(self) -> None:
        """Leave the folder to the next run."""
        self._work.close()

    def _path(self, index: int) -> Path:
        return self.folder / f"{index:08d}.shard"


@dataclass
class FilledCorpus:
    """What was done to fill a corpus."""

    tally: FillingTally
    store: ShardStore | None = None
    shards: int = 0
    resumed_shards: int = 0
    """Of these, those that an earlier run had finished."""
    markers: int = 0
    """Filled by this run."""
    seconds: float = 0.0
    """Of this run."""
    forward_seconds: float | None = None
    """Inside the model in this run, summed over devices; ``None`` without a model, or where nothing was left to do."""

    def counted(self, filled: FilledShard) -> FilledShard:
        """Count a shard."""
        self.tally.add_plain(filled.tally)
        self.shards += 1
        if filled.resumed:
            self.resumed_shards += 1
            return filled
        self.markers += filled.tally["markers"]
        if filled.forward_seconds is not None:
            self.forward_seconds = (self.forward_seconds or 0.0) + filled.forward_seconds
        return filled

    def remove(self) -> None:
        """Remove what could resume the fill: it is complete."""
        if self.store is not None:
            self.store.remove()

    def measured(self) -> dict[str, Any]:
        """What the report says; what the sidecar alone tells is rounded."""
        tally, restoration, overall, counts = self.tally, None, {}, {**self.tally.counts}
        if tally.restoration:
            rounded = Rounding(clone_key("restoration"), tally.as_plain())
            restoration = tally.restoration.measured(rounded)
            overall = restoration["overall"]
            # Who reads two reports would read a place off these too.
            counts |= {name: round(rounded(counts[name])) for name in counts if name.startswith("forbidden_")}
        return {
            "lines": tally.lines,
            "markers": tally.markers,
            "fills": tally.fills,
            "fallback_count": tally.fallbacks,
            "distinct_fills": len(tally.words),
            "off_list_share": tally.off_list_share,
            "kept_words": len(tally.kept),
            "candidate_words": tally.candidate_words,
            "restoration_rate": overall.get("rate"),
            "expected_restoration_by_frequency": overall.get("expected_by_frequency"),
            "restoration": restoration,
            **counts,
            "shards": self.shards,
            "resumed_shards": self.resumed_shards,
            "filling_seconds": round(self.seconds, 3),
            "markers_per_second": round(self.markers / self.seconds, 1) if self.markers else None,
            "forward_seconds": None if self.forward_seconds is None else round(self.forward_seconds, 3),
        }


def fill_corpus(
    context: FillContext, devices: Sequence[Device], resources: ResourceSettings, advance: Callable[[int], object]
) -> FilledCorpus:
    """Write the filled text; ``advance`` is called with the number of slots just filled.

    Where there are several shards, each is kept as soon as it is finished, and the output is put together from them at
    the end, so that nothing half-written lies beside it for hours, or for ever where the process is killed.
    """
    files, copies = context.files, context.method.copies
    shards = read_copies(
        copies,
        lambda: read_shards(
            context.lines(),
            read_sidecar(context.sidecar) if context.sidecar else None,
            read_documents(files.documents) if files.documents else None,
        ),
    )
    first = list(itertools.islice(shards, 2))
    done = FilledCorpus(FillingTally(context.kept, Restoration(None, copies) if context.sidecar else None))
    if len(first) < 2:
        # One shard is all or nothing, so there is nothing to keep of it.
        devices = devices[:1]
    elif not any(map(is_stream, (files.input, files.output))):
        folder = resources.work_folder or DEFAULT_WORK_FOLDER
        done.store = ShardStore(folder, files.output, fill_key(context), resume=resources.resume)
    started = time.perf_counter()
    with contextlib.ExitStack() as on_failure:
        if done.store is not None:
            on_failure.callback(done.store.close)
        results = filled_shards(itertools.chain(first, shards), context.corpus_filler, devices, done.store, advance)
        with contextlib.closing(results):
            lines: Iterable[str]
            if done.store is None:
                lines = (line for filled in results for line in done.counted(filled).lines)
            else:
                for filled in results:
                    done.counted(filled)
                lines = done.store.lines(done.shards)
            write_lines(files.output, _masked(lines, done, files), private=True)
        on_failure.pop_all()
    done.seconds = time.perf_counter() - started
    return done


def _masked(lines: Iterable[str], done: FilledCorpus, files: FillFiles) -> Iterator[str]:
    """The lines; ``CorpusError`` at their end where nothing in them was masked, so that no raw text becomes a fill."""
    is_empty = True
    for line in lines:
        is_empty = is_empty and not line.strip()
        yield line
    if is_empty:
        raise empty_text(files.input)
    if not done.tally.markers and not files.allow_unmasked:
        raise CorpusError(
            f"{files.input!r} has no marker such as [MASK], so filling would copy it as it is; give a text that "
            "'palimpsest mask' wrote, or --allow-unmasked where nothing in it is private"
        )


def fill_key(context: FillContext) -> str:
    """One hash of everything that decides what a fill writes: two runs with the same key write the same bytes."""
    method, files = context.method, context.files
    models = [name for name in (files.filler, base_of(files.filler) if files.filler else None) if name]
    tagger = method.class_check.tagger if isinstance(method, ClassAware) and method.matches_classes else None
    models += [tagger.model] if tagger else []
    document = {
        "settings": as_plain(method),
        "seed": context.seed,
        "content": {option: content_hash(path) for option, path in files.read() if path != files.filler},
        "models": {name: model_state(name) for name in models},
        "counted": context.learned.measured.get("counted_frequencies"),
        **surroundings(context),
    }
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def surroundings(context: FillContext) -> dict[str, Any]:
    """What a number depends on besides its inputs: code, libraries, machine."""
    return {
        # The order of a sum changes its last digits.
        "threads": context.threads,
        "on_gpu": _has_gpu() if context.files.filler else None,
        "code": _code_hash(),
        "versions": {name: _version(name) for name in _LIBRARIES},
    }


def _code_hash() -> str:
    """Of this package as it is, lists of words too, whether it is committed or not."""
    digest = hashlib.sha256()
    for file in sorted([*_PACKAGE.rglob("*.py"), *_PACKAGE.rglob("*.txt")]):
        digest.update(f"{file.relative_to(_PACKAGE)}\0".encode() + file.read_bytes())
    return digest.hexdigest()


def model_state(name: str) -> str | None:
    """The content of a model's folder, the version of a pipeline's package, or the commit of a model of the hub."""
    if not Path(name).is_dir() and (installed := _version(name)):
        return installed
    from huggingface_hub import hf_hub_download

    try:
        source = locate_model(name)
        # In the hub's cache a file lies in a folder named by the commit.
        is_folder = Path(source).is_dir()
        return content_hash(source) if is_folder else Path(hf_hub_download(source, "config.json")).parent.name
    except Exception:
        # Whatever the reason, loading the model says it better.
        return None


def _version(package: str) -> str | None:
    try:
        return version(package)
    except (PackageNotFoundError, ValueError):
        return None


def _has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def filled_shards(
    shards: Iterable[Shard],
    make_filler: Callable[[], CorpusFiller],
    devices: Sequence[Device],
    store: ShardStore | None,
    advance: Callable[[int], object] = lambda slots: None,
) -> Generator[FilledShard, None, None]:
    """Yield the filled shards in the order of the corpus; each is in ``store``, if there is one, before that.

    The filler is made when a shard wants it: where an earlier run has filled all, no model is loaded. With one device
    everything happens in this process. ``advance`` is called with the number of slots just filled.
    """
    if len(devices) > 1:
        yield from _by_workers(iter(shards), make_filler, devices, store, advance)
        return
    filler: CorpusFiller | None = None
    for shard in shards:
        filled = store.load(shard.index) if store else None
        if filled is None:
            if filler is None:
                filler = make_filler()
            filled = filler.fill_shard(shard, advance)
            if store:
                store.save(filled)
        yield filled


def _by_workers(
    shards: Iterator[Shard],
    make_filler: Callable[[], CorpusFiller],
    devices: Sequence[Device],
    store: ShardStore | None,
    advance: Callable[[int], object],
) -> Iterator[FilledShard]:
    waiting: dict[int, FilledShard] = {}
    taken = given = 0
    exhausted = False
    with ShardWorkers(make_filler, devices) as workers:
        while not exhausted or workers.busy or waiting:
            while not exhausted and workers.idle and taken < given + _AHEAD_PER_DEVICE * len(devices):
                shard = next(shards, None)
                if shard is None:
                    exhausted = True
                    break
                taken += 1
                filled = store.load(shard.index) if store else None
                if filled is None:
                    workers.submit(shard)
                else:
                    waiting[shard.index] = filled
            if workers.busy and given not in waiting:
                filled = workers.next_finished()
                advance(filled.tally["fills"])
                if store:
                    store.save(filled)
                waiting[filled.index] = filled
            while given in waiting:
                yield waiting.pop(given)
                given += 1
