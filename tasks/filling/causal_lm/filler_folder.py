"""What a causal filler's folder says of itself, and how a filler is recognised as causal.

A folder that ``train-filler`` writes holds ``causal_filler.json`` beside the weights: the instruction of the prompts
that the model was tuned on (``null``: none), the precision it runs in, and, where the folder has the adapter alone, the
model that the adapter belongs to.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tasks.causal_model import ADAPTER, gguf_file_in
from tasks.errors import ModelError

RECORD = "causal_filler.json"
_CAUSAL_ENDINGS = ("ForCausalLM", "LMHeadModel")


@dataclass(frozen=True, slots=True)
class CausalFillerRecord:
    """The content of ``causal_filler.json``."""

    instruction: str | None = None
    """Instruction of the prompts that the model was tuned on; ``None`` where it was not tuned."""
    precision: str = "auto"
    """As in ``CausalLanguageModelFiller``."""
    base: str | None = None
    """Model that the adapter of the folder belongs to; ``None`` where the folder holds whole weights."""
    gguf_file: str | None = None
    """GGUF file of the base."""

    @classmethod
    def read(cls, folder: str | Path) -> "CausalFillerRecord":
        """The record of a folder; the defaults where it has none, as a folder from the hub.

        Raises ``ModelError`` where the file is damaged, or where an adapter does not say what it belongs to.
        """
        path = Path(folder) / RECORD
        if path.exists():
            try:
                return cls(**json.loads(path.read_text(encoding="utf-8")))
            except (ValueError, TypeError):
                raise ModelError(f"{str(path)!r} is damaged; run 'palimpsest train-filler' again") from None
        if (Path(folder) / ADAPTER).exists():
            base = _json(Path(folder) / ADAPTER).get("base_model_name_or_path")
            if not base:
                raise ModelError(
                    f"adapter folder {str(folder)!r} does not name its base model in {ADAPTER}; "
                    "make the filler with 'palimpsest train-filler'"
                )
            return cls(base=base)
        return cls()

    def write(self, folder: str | Path) -> None:
        """Write the record into a folder."""
        (Path(folder) / RECORD).write_text(json.dumps(asdict(self), indent=2) + "\n", encoding="utf-8")


def is_causal(name: str) -> bool:
    """Whether a filler (hub name, folder or ``package:NAME/FOLDER``) is a causal language model.

    Goes by what its configuration says of itself, and is ``False`` where there is none to read: whoever loads it next
    says what is wrong.
    """
    from tasks.model_source import locate_model

    try:
        source = locate_model(name)
    except ModelError:
        return False
    folder = Path(source)
    if folder.is_dir():
        if (folder / RECORD).exists() or (folder / ADAPTER).exists() or gguf_file_in(folder):
            return True
        return _says_causal(_json(folder / "config.json"))
    from transformers import PretrainedConfig

    try:
        configuration, _ = PretrainedConfig.get_config_dict(source)
    except Exception:
        # Whatever keeps a hub's file from being read is said by the loading that follows.
        return False
    return _says_causal(configuration)


def _says_causal(configuration: dict[str, Any]) -> bool:
    return any(str(name).endswith(_CAUSAL_ENDINGS) for name in configuration.get("architectures") or ())


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
