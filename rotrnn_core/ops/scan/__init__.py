"""Which scan runs? One signature, one definition, and the fastest form that equals it."""

import torch

from rotrnn_core.config import Backend
from rotrnn_core.notation import Decay, Drive, Phase, State, States
from rotrnn_core.ops.scan.backends import backend_for, warm_kernels
from rotrnn_core.ops.scan.blocked import scan_blocked
from rotrnn_core.ops.scan.compiled import scan_compiled
from rotrnn_core.ops.scan.definition import scan_sequential
from rotrnn_core.ops.scan.projected import scan_projected

__all__ = [
    "backend_for",
    "scan",
    "scan_blocked",
    "scan_compiled",
    "scan_projected",
    "scan_sequential",
    "warm_kernels",
]


def scan(
    drive: Drive,
    decay: Decay,
    phase: Phase,
    h0: State | None = None,
    *,
    reverse: bool = False,
    backend: Backend = "auto",
) -> States:
    """Run the rotational recurrence by the form that `backend` names; the promise is `scan_sequential`'s.

    A drive of less than float32's precision is scanned in float32.

    Raises:
        ConfigError: The backend cannot run on drive's device.
    """
    chosen = backend_for(backend, drive.device.type)
    if chosen == "triton" and drive.dtype in (torch.float32, torch.bfloat16):
        from rotrnn_core.ops.scan.triton_scan import scan_triton

        return scan_triton(drive, decay, phase, h0, reverse=reverse)
    run = {"reference": scan_sequential, "numba": scan_compiled}.get(chosen, scan_blocked)
    if drive.dtype in (torch.bfloat16, torch.float16):
        carried = None if h0 is None else h0.float()
        return run(drive.float(), decay, phase, carried, reverse=reverse).to(drive.dtype)
    return run(drive, decay, phase, h0, reverse=reverse)
