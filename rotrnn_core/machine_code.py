"""Where does numba keep machine code, so that the next process need not make it again?"""

import contextlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba


def kept(wrap: Callable[..., Any], function: Callable[..., Any]) -> Any:
    """`wrap(cache=True)(function)`, one of numba's decorators on a function.

    Machine code is kept beside the function's file, or in the user's cache, or where NUMBA_CACHE_DIR says; where none
    of these can be written, in a folder of the user's own among the temporary files; and in this process alone at the
    worst.
    """
    with contextlib.suppress(RuntimeError, OSError):
        return wrap(cache=True)(function)
    private = private_folder()
    if private is not None:
        numba.config.CACHE_DIR = str(private)  # type: ignore[attr-defined]
        with contextlib.suppress(RuntimeError, OSError):
            return wrap(cache=True)(function)
    return wrap()(function)


def private_folder() -> Path | None:
    """A folder that this user alone can write: what lies in a cache is run."""
    folder = Path(tempfile.gettempdir()) / f"rotbench-kernels-{os.getuid() if hasattr(os, 'getuid') else 'user'}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    owned = not hasattr(os, "getuid") or found.st_uid == os.getuid()
    return folder if owned and not folder.is_symlink() and not found.st_mode & 0o022 else None
