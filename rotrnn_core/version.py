"""Which code is this? One name for the whole of rotrnn_core, the same on every machine; needs no torch."""

import functools
import hashlib
from pathlib import Path


@functools.cache
def code_version() -> str:
    """The first 16 hexadecimal digits of the SHA-256 of every source file, in order of path; read once."""
    root = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py"), key=lambda path: path.relative_to(root).as_posix()):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()[:16]
