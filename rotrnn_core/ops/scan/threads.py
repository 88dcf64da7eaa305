"""On which threads do compiled kernels run? On torch's own, so that no second pool competes with its matrix products.

torch runs its loops on an OpenMP pool; the runtime that it has loaded lends that pool to any C function. Where there
is none, plain threads do. Importing this file imports numba.
"""

import ctypes
import functools
import threading
from collections.abc import Callable, Mapping

import torch

from rotrnn_core.ops.scan.kernels import FIELDS, compiled

_Work = ctypes.c_int64 * len(FIELDS)
_PLACE = {name: place for place, name in enumerate(FIELDS)}


def run(kernel: str, dtype: torch.dtype, fields: Mapping[str, int]) -> None:
    """Run a kernel on all its tiles, on as many threads as torch uses; fields left out are 0."""
    work = _Work()
    for name, value in fields.items():
        work[_PLACE[name]] = value
    threads = torch.get_num_threads() if fields["tiles"] > 1 else 1
    entry, address = compiled(kernel, torch.finfo(dtype).bits).address, ctypes.addressof(work)
    if threads == 1:
        _function(entry)(address)
    else:
        _team()(entry, address, threads, 0)


@functools.cache
def _function(entry: int) -> Callable[[int], None]:
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(entry)


@functools.cache
def _team() -> Callable[[int, int, int, int], None]:
    """Calls a C function with one argument on every thread of a team, and waits for all."""
    try:
        found = ctypes.CDLL(None).GOMP_parallel
    except (AttributeError, OSError, TypeError):
        return _plain_team
    found.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
    found.restype = None
    team: Callable[[int, int, int, int], None] = found
    return team


def _plain_team(entry: int, address: int, threads: int, _flags: int) -> None:
    team = [threading.Thread(target=_function(entry), args=(address,)) for _ in range(threads)]
    for thread in team:
        thread.start()
    for thread in team:
        thread.join()
