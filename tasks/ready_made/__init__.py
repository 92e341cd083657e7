"""Models that ship with palimpsest: results of training stages on public text, trained once.

Each folder here is a model in its stage's format, with ``made_of.json``: the stage, its settings, a hash of each text
that it read, and its measurements. A stage with the same settings and texts copies the folder; with any others it
trains. To make one again, remove its folder, run the stage, and pass the model and the stage's report:

    python -m tasks.ready_made models/pretrained results/reports/language_model/pretrained.json \
        tasks/ready_made/pretrained

Nothing private belongs here: an attacker who guesses a text can compare it with its hash.
"""

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.settings.base import Settings

RECORD = "made_of.json"
FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class ReadyMade:
    """A model, and the measurements of its training."""

    folder: Path
    measured: dict[str, Any]

    def copy_to(self, output: str) -> None:
        """Write the folder that training would have written; of several processes the first one does."""
        from tasks.files.atomic_file import PUBLIC_MODE, atomic_folder
        from tasks.threads import is_first_process

        if not is_first_process():
            return
        with atomic_folder(output) as fresh:
            for file in self.folder.iterdir():
                if file.name != RECORD:
                    shutil.copyfile(file, fresh / file.name)
                    (fresh / file.name).chmod(PUBLIC_MODE)


def ready_made(stage: str, settings: Settings, texts: Sequence[str | Path | None]) -> ReadyMade | None:
    """The stored result of a stage for these settings and texts (``None``: not given), or ``None``."""
    asked = settings.model_dump(mode="json")
    for path in sorted(FOLDER.glob(f"*/{RECORD}")):
        record = json.loads(path.read_text(encoding="utf-8"))
        if (record["stage"], record["parameters"]) == (stage, asked) and record["texts"] == _hashes(texts):
            return ReadyMade(path.parent, record["measured"] | {"ready_made_at": record["code"]["commit"]})
    return None


def keep(model: str, report: str, folder: str) -> None:
    """Store a stage's trained model among the shipped ones."""
    document: Mapping[str, Any] = json.loads(Path(report).read_text(encoding="utf-8"))
    record = {name: document[name] for name in ("stage", "parameters", "measured", "code", "environment", "started")}
    texts = [str(file) for path in document["inputs"] for file in texts_in(path)]
    shutil.copytree(model, folder)
    text = json.dumps(record | {"texts": _hashes(texts)})
    (Path(folder) / RECORD).write_text(text + "\n", encoding="utf-8")


def texts_in(path: str) -> list[Path]:
    """A text, or those in a folder of texts."""
    given = Path(path)
    return sorted(given.iterdir()) if given.is_dir() else [given]


def _hashes(texts: Sequence[str | Path | None]) -> list[str]:
    found = set()
    for path in texts:
        if not path:
            continue
        with open(path, "rb") as stream:
            found.add(hashlib.file_digest(stream, "sha256").hexdigest())
    return sorted(found)
