"""Which scan runs? One signature, one definition, and the fastest form that equals it."""

from rotrnn_core.notation import Decay, Drive, Phase, State, States
from rotrnn_core.ops.scan.blocked import scan_blocked
from rotrnn_core.ops.scan.definition import scan_sequential

__all__ = ["scan", "scan_blocked", "scan_sequential"]


def scan(drive: Drive, decay: Decay, phase: Phase, h0: State | None = None, *, reverse: bool = False) -> States:
    """Run the rotational recurrence by the fastest form there is; the promise is `scan_sequential`'s."""
    return scan_blocked(drive, decay, phase, h0, reverse=reverse)
