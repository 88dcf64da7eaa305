"""What becomes of a tensor's memory when it is freed? It stays with the process, so that the next step finds it ready.

The C library hands blocks of over 32 MiB back to the system at once, and the next block of that size comes one page
fault at a time: at (batch 32, time 2,048, d_model 128) that took a seventh of a training step.
"""

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_MOST = 2**31 - 1


def keep_freed_memory() -> bool:
    """Have freed memory kept by this process, whose size then stays at its peak.

    Returns:
        Whether the C library knows how; where it does not, nothing changes.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return bool(mallopt(_MMAP_THRESHOLD, _MOST)) and bool(mallopt(_TRIM_THRESHOLD, _MOST))
