"""Which form of the scan runs on a device? "auto" takes the fastest that is there; a wish that cannot be met says why.

reference: the definition. torch: plain torch, any device. numba: compiled loops, CPU. triton: GPU kernels, CUDA.
"""

import importlib.util

import torch

from rotrnn_core.checks import require
from rotrnn_core.config import Backend

_NUMBA = importlib.util.find_spec("numba") is not None
_TRITON = importlib.util.find_spec("triton") is not None


def backend_for(wanted: Backend, device: str) -> Backend:
    """The backend that runs where `wanted` is asked for on a device of the type "cpu", "cuda", ...; never "auto".

    Raises:
        ConfigError: It cannot run there; the text says what would.
    """
    if wanted == "auto":
        if device == "cpu":
            return "numba" if _NUMBA else "torch"
        return "triton" if device == "cuda" and _TRITON else "torch"
    where = "training.backend"
    if wanted == "numba":
        require(_NUMBA, where, wanted, "numba is not installed: install it, or use auto or torch")
        require(device == "cpu", where, wanted, f"it runs on the CPU and the device is {device}: use auto or torch")
    if wanted == "triton":
        require(_TRITON, where, wanted, "triton is not installed: install it, or use auto or torch")
        require(device == "cuda", where, wanted, f"it runs on CUDA and the device is {device}: use auto or torch")
    return wanted


def warm_kernels(backend: Backend) -> None:
    """Load the compiled kernels of a backend, or make them, so that no training step waits for it.

    A machine without numba pays nothing, and neither do the other backends.
    """
    if backend == "numba":
        from rotrnn_core.ops.scan.kernels import compiled

        for kernel in ("scan", "adjoint"):
            compiled(kernel, torch.finfo(torch.get_default_dtype()).bits)
