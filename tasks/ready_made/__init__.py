"""Models that come with palimpsest: what a stage would train from public text, trained once.

Each folder here is a model as its stage writes it, with ``made_of.json``: the stage, its settings, a hash of each text
that it read, and what was measured. A stage that is asked for just that copies the folder; with any other setting or
text it trains. To make one anew, remove its folder, run the stage, and hand over the model and the stage's report:

    python -m tasks.ready_made models/pretrained results/reports/language_model/pretrained.json \
        tasks/ready_made/pretrained

Nothing private belongs here: whoever guesses a text can hold it against its hash.
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
    """A model, and what its training measured."""

    folder: Path
    measured: dict[str, Any]

    def copy_to(self, output: str) -> None:
        """Write the folder that training would have written; the first of several processes does."""
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
    """What a stage would make by these settings of these texts (``None``: not given); ``None``: it has to."""
    asked = settings.model_dump(mode="json")
    for path in sorted(FOLDER.glob(f"*/{RECORD}")):
        record = json.loads(path.read_text(encoding="utf-8"))
        if (record["stage"], record["parameters"]) == (stage, asked) and record["texts"] == _hashes(texts):
            return ReadyMade(path.parent, record["measured"] | {"ready_made_at": record["code"]["commit"]})
    return None


def keep(model: str, report: str, folder: str) -> None:
    """Put a model that a stage has trained among those that are ready made."""
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
