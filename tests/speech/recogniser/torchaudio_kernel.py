"""torchaudio's compiled transducer loss, also beside a CPU build of PyTorch.

torchaudio's wheel is a CUDA build whose extension refuses to load where CUDA's libraries are missing, though its CPU
kernels need none of them. Empty libraries of the same names, compiled here into a temporary folder, let it load: the
kernel that is compared is the published one. The stand-ins abort the process if a CUDA function is ever called, so this
is for a comparison alone.
"""

import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path

_ABORTING = (
    "aoti_torch_get_current_cuda_stream",
    "torch_c10_cuda_check_msg",
    "torch_c10_cuda_free_error_msg",
    "torch_cuda_stream_synchronize",
    "torch_get_cuda_stream_from_pool",
    "torch_set_current_cuda_stream",
    "__cudaGetKernel",
    "__cudaLaunchKernel",
    "__cudaPopCallConfiguration",
    "__cudaPushCallConfiguration",
    "cudaGetErrorName",
    "cudaGetLastError",
    "cudaMemcpy2DAsync",
    "cudaMemcpyAsync",
    "cudaMemset",
    "cudaMemsetAsync",
    "cudaSetDevice",
    "cudaStreamSynchronize",
)
_REGISTERING = (  # called while the extension is loaded
    "__cudaRegisterFatBinary",
    "__cudaRegisterFatBinaryEnd",
    "__cudaRegisterFunction",
    "__cudaRegisterVar",
    "__cudaUnregisterFatBinary",
)
_RUNTIME = "libcudart.so.13"


def load() -> str | None:
    """Make ``torchaudio.functional.rnnt_loss`` usable on a CPU; None, or the reason why it cannot be.

    Call it before ``tasks.torch_setup.set_up_torch`` and before torchaudio is imported.
    """
    import torch

    if torch.version.cuda is None:
        compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
        if compiler is None:
            return "no C compiler for the stand-ins of CUDA's libraries"
        try:
            with tempfile.TemporaryDirectory() as folder:
                for library in _compiled_stand_ins(Path(folder), compiler):
                    ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)
        except (OSError, subprocess.CalledProcessError) as error:
            return f"CUDA's libraries have no stand-in: {error}"
    try:
        import torchaudio

        # On a CPU, 'make install' has removed the module that loads the kernels with torchaudio.
        torch.ops.load_library(Path(torchaudio.__file__).parent / "lib" / "libtorchaudio.abi3.so")
    except (OSError, ImportError) as error:
        return f"torchaudio's extension does not load: {error.__cause__ or error}"
    name = "torchaudio::rnnt_loss_forward"
    there = hasattr(torch.ops.torchaudio, "rnnt_loss_forward")
    if there and torch._C._dispatch_has_kernel_for_dispatch_key(name, "CPU"):
        return None
    return "torchaudio has no compiled transducer loss for CPUs"


def _compiled_stand_ins(folder: Path, compiler: str) -> list[Path]:
    source, versions = folder / "cuda.c", folder / "versions"
    aborting = "".join(f"void {name}(void) {{ abort(); }}\n" for name in _ABORTING)
    registering = "".join(f"void *{name}(void) {{ static void *none; return &none; }}\n" for name in _REGISTERING)
    source.write_text(f"#include <stdlib.h>\n{aborting}{registering}", encoding="utf-8")
    versions.write_text(f"{_RUNTIME} {{ global: __cuda*; cuda*; }};\n", encoding="utf-8")
    libraries = []
    for name in (_RUNTIME, "libc10_cuda.so", "libtorch_cuda.so"):
        command = [compiler, "-shared", "-fPIC", "-w", "-o", str(folder / name), f"-Wl,-soname,{name}", str(source)]
        if name == _RUNTIME:
            command.append(f"-Wl,--version-script={versions}")
        subprocess.run(command, check=True, capture_output=True)
        libraries.append(folder / name)
    return libraries
