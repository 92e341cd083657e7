"""Private names of other packages may change in any version. The product uses no further ones than those below."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PRODUCT = ("palimpsest.py", "tasks", "flows", "dashboards")
ALLOWED = {
    "_attn_implementation": "transformers has no public name for the attention in use",
    "_int_mm _linear_pointwise _reorder_linear_weight": "PyTorch's products with packed weights have no public names",
    "_is_amx_tile_supported _is_avx512_bf16_supported": "nothing else says what the processor multiplies",
    "_IS_ALIGN_AVAILABLE _IS_TORCHAUDIO_EXT_AVAILABLE _check_cuda_version": "a CPU build of PyTorch lacks a library "
    "that torchaudio loads on import",
    "_ctypes _handle": "ctypes closes no library",
    "_folded_counts": "of another object of the same class",
}
"""The reason of each."""


def private_names(*paths: Path) -> set[str]:
    """Private members of other objects, and private names that are imported."""
    rules = ["--isolated", "--no-cache", "--preview", "--select", "SLF001,PLC2701", "--output-format", "json"]
    command = [sys.executable, "-m", "ruff", "check", *rules, *map(str, paths)]
    found = json.loads(subprocess.run(command, capture_output=True, check=False).stdout)
    return {each["message"].split("`")[1].split(".")[-1] for each in found}


def test_the_product_uses_no_further_private_name_of_another_package(tmp_path: Path) -> None:
    assert private_names(*(ROOT / name for name in PRODUCT)) == set(" ".join(ALLOWED).split())
    (tmp_path / "new.py").write_text("from prefect._internal import x\nfrom dvc.stage import run\nrun._run()\n")
    assert private_names(tmp_path / "new.py") == {"_internal", "_run"}
