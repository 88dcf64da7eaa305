"""Which ports are free on this machine?"""

import socket

LOOPBACK = "127.0.0.1"


class NoFreePort(Exception):
    """Every port in the range that was asked for is taken."""


def any_free_port() -> int:
    """A port that nobody listens on at this moment."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def next_free_port(preferred: int, *, tries: int = 100, without: frozenset[int] = frozenset()) -> int:
    """The preferred port, or the first free one above it.

    Args:
        preferred: Where to begin; 0 means any free port.
        tries: How many ports to look at.
        without: Ports that are promised to somebody already.

    Raises:
        NoFreePort: When all of them are taken.
    """
    if preferred == 0:
        return any_free_port()
    for port in range(preferred, min(preferred + tries, 65536)):
        if port not in without and _is_free(port):
            return port
    raise NoFreePort(f"no free port between {preferred} and {preferred + tries - 1}; name another one")


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True
