"""Which API, and with which token? Arguments first, then the environment, then the nearest local stack."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from client.errors import APIUnreachable

STACK_FOLDER = ".rotbench"
STACK_FILE = "stack.json"


@dataclass(frozen=True)
class Stack:
    """A local stack, as its file describes it."""

    path: Path
    api_url: str
    dashboard_url: str | None
    token_file: Path | None
    pid: int | None

    def token(self) -> str | None:
        """The stack's token, None where its file cannot be read."""
        try:
            return self.token_file.read_text(encoding="ascii").strip() or None if self.token_file else None
        except (OSError, UnicodeDecodeError):
            return None


@dataclass(frozen=True)
class Connection:
    """An address and a token, and where each was found."""

    url: str
    token: str | None
    url_source: str
    token_source: str | None
    stack: Stack | None = None


def read_stack(path: Path) -> Stack | None:
    """The stack that a stack.json describes, None when there is none or it is not whole."""
    try:
        fields: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        token_file = fields.get("token_file")
        return Stack(
            path=path,
            api_url=fields["api_url"].rstrip("/"),
            dashboard_url=fields.get("dashboard_url"),
            token_file=path.parent / token_file if token_file else None,
            pid=fields.get("pid"),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def nearest_stack(start: Path) -> Stack | None:
    """The stack of `start` or of the nearest folder above it that has one."""
    for folder in (start, *start.parents):
        stack = read_stack(folder / STACK_FOLDER / STACK_FILE)
        if stack is not None:
            return stack
    return None


def find(
    url: str | None = None,
    token: str | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    start: Path | None = None,
) -> Connection:
    """Find the API's address and token.

    The token of a local stack goes to that stack alone, never to another address.

    Raises:
        APIUnreachable: No address is given anywhere.
    """
    environment = os.environ if environment is None else environment
    stack = nearest_stack(start or Path.cwd())
    if url:
        address, source = url, "argument"
    elif environment.get("ROTBENCH_URL"):
        address, source = environment["ROTBENCH_URL"], "ROTBENCH_URL"
    elif stack:
        address, source = stack.api_url, str(stack.path)
    else:
        raise APIUnreachable(
            "no API is known here",
            url=None,
            remedy="start one with `rotbench up`, or set ROTBENCH_URL and ROTBENCH_TOKEN to one that runs",
        )
    address = address.rstrip("/")
    if stack and stack.api_url != address:
        stack = None
    if token:
        return Connection(address, token, source, "argument", stack)
    if environment.get("ROTBENCH_TOKEN"):
        return Connection(address, environment["ROTBENCH_TOKEN"], source, "ROTBENCH_TOKEN", stack)
    if stack and (found := stack.token()):
        return Connection(address, found, source, str(stack.token_file), stack)
    return Connection(address, None, source, None, stack)
