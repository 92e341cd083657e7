"""What of a stage goes to the DVC remote that several clones trust with raw text, and what comes from there.

Runs as a process of its own, in the folder of the project (``flows.stages.processes``); REMOTE is the name of
``resources.trusted_remote``, and no other remote is ever written to:

    push REMOTE STAGE…            outputs and run-cache entries of the stages
    publish REMOTE FILE STAGE…    their outputs; writes into FILE what they are, as dvc.lock would say it
    fetch REMOTE STAGE            the entry for its present inputs, with its outputs; status 3 where there is none
    take REMOTE FILE              puts the outputs that such a FILE names in their places

Outputs with ``push: false`` travel here, and nowhere else. What DVC does not keep in its cache is left out.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from dvc.exceptions import DvcException, UploadError
from dvc.repo import Repo
from dvc.stage.cache import _can_hash, _get_cache_hash, _get_stage_hash
from dvc.stage.serialize import to_single_stage_lockfile

NOT_THERE = 3
"""Exit status of ``fetch`` where nobody has pushed the stage's result."""
_LEGACY = "md5-dos2unix"
"""DVC's name for the part of a remote that holds the run-cache."""


def main(arguments: Sequence[str]) -> int:
    """Do one of the above; the exit status. Errors are printed as DVC prints its own."""
    what, remote, *rest = arguments
    try:
        with Repo(".", _wait_for_lock=True) as repository:
            if what == "push":
                push(repository, remote, rest)
            elif what == "publish":
                write_outputs(Path(rest[0]), publish(repository, remote, rest[1:]))
            elif what == "fetch":
                return 0 if fetch(repository, remote, rest[0]) else NOT_THERE
            elif what == "take":
                take(repository, remote, read_outputs(Path(rest[0])))
            else:
                raise ValueError(f"{what!r} is not known")
    except (DvcException, OSError) as error:
        # A remote names paths and addresses, never contents.
        print(f"ERROR: {' '.join(str(error).split()) or type(error).__name__}", file=sys.stderr)
        return 1
    return 0


def can_travel(output: Any) -> bool:
    """Whether DVC keeps an output in a form in which another clone can have it."""
    return bool(output.use_cache and output.protocol == "local" and not output.persist)


def push(repository: Repo, remote_name: str, names: Iterable[str]) -> None:
    """Push all that makes a clone with the same inputs restore these stages."""
    cache = repository.stage_cache
    for stage in _stages(repository, names):
        _push_objects(repository, remote_name, stage.outs)
        cache.save(stage)
        # The entry comes last: who finds it finds the outputs too.
        key = _get_stage_hash(stage)
        value = _get_cache_hash(to_single_stage_lockfile(stage))
        remote, folder = _remote_entries(repository, remote_name, key)
        remote.fs.makedirs(folder, exist_ok=True)
        text = Path(cache._get_cache_path(key, value)).read_bytes()
        _put_whole(remote.fs, remote.fs.join(folder, value), text)


def publish(repository: Repo, remote_name: str, names: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
    """Push those outputs of the stages that can travel; what they are, by stage."""
    told = {}
    for stage in _stages(repository, names):
        outputs = [output for output in stage.outs if can_travel(output)]
        _push_objects(repository, remote_name, outputs)
        paths = {output.def_path for output in outputs}
        entry = to_single_stage_lockfile(stage)
        told[stage.addressing] = [dict(found) for found in entry.get("outs", []) if found["path"] in paths]
    return told


def fetch(repository: Repo, remote_name: str, name: str) -> bool:
    """Bring the newest result for the stage's present inputs into this clone's cache; whether there was one."""
    (stage,) = _stages(repository, [name])
    stage.save_deps()
    if not _can_hash(stage):
        return False
    key = _get_stage_hash(stage)
    remote, folder = _remote_entries(repository, remote_name, key)
    if not remote.fs.exists(folder):
        return False
    cache = repository.stage_cache
    for path in sorted(remote.fs.find(folder)):
        value = remote.fs.name(path)
        if len(value) != 64:
            continue  # one that is being written
        local = Path(cache._get_cache_path(key, value))
        local.parent.mkdir(parents=True, exist_ok=True)
        remote.fs.get_file(path, str(local))
    entry = cache._load(stage)
    if entry is None:
        return False
    restored = cache._create_stage(entry, wdir=stage.wdir)
    _pull_objects(repository, remote_name, restored.outs)
    return bool(restored.outs_cached())


def take(repository: Repo, remote_name: str, told: dict[str, list[dict[str, Any]]]) -> None:
    """Pull the outputs and put them in their places; ``dvc.lock`` stays as it is."""
    for name, outputs in told.items():
        (stage,) = _stages(repository, [name])
        taken = repository.stage_cache._create_stage({"cmd": "", "outs": outputs}, wdir=stage.wdir)
        _pull_objects(repository, remote_name, taken.outs)
        for output in taken.outs:
            output.checkout(force=True)


def write_outputs(path: Path, told: dict[str, list[dict[str, Any]]]) -> None:
    """Write what ``take`` reads."""
    path.write_text(json.dumps(told), encoding="utf-8")


def read_outputs(path: Path) -> dict[str, list[dict[str, Any]]]:
    """What ``publish`` has written."""
    told: dict[str, list[dict[str, Any]]] = json.loads(path.read_text(encoding="utf-8"))
    return told


def _stages(repository: Repo, names: Iterable[str]) -> Iterator[Any]:
    with repository.lock:
        repository._reset()
        stages = [repository.stage.get_target(name) for name in names]
    yield from stages


def _push_objects(repository: Repo, remote_name: str, outputs: Iterable[Any]) -> None:

    for output in outputs:
        # Without push=True, which would leave out what has push: false.
        for objects in output.get_used_objs().values():
            failed = repository.cloud.push(objects, remote=remote_name).failed
            if failed:
                raise UploadError(len(failed))


def _pull_objects(repository: Repo, remote_name: str, outputs: Iterable[Any]) -> None:
    for output in outputs:
        for objects in output.get_used_objs(remote=remote_name).values():
            repository.cloud.pull(objects, remote=remote_name)


def _remote_entries(repository: Repo, remote_name: str, key: str) -> tuple[Any, str]:
    """The remote, and the folder in it that holds the results for one state of a stage's inputs."""
    remote = repository.cloud.get_remote_odb(remote_name, "push --run-cache", hash_name=_LEGACY)
    return remote, remote.fs.join(remote.path, "runs", key[:2], key)


def _put_whole(fs: Any, path: str, content: bytes) -> None:
    """Write a file of the remote so that nobody reads half of it."""
    partial = f"{path}.partial"
    with fs.open(partial, "wb") as stream:
        stream.write(content)
    fs.move(partial, path)
