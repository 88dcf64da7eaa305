"""Which API does a command ask, and which run does a person mean? Global options, and ids that may be cut short."""

import uuid
from dataclasses import dataclass
from itertools import islice

import typer

from client.api import RotBench
from client.errors import RotBenchError
from client.results import Run, Sweep

LOOK_BACK = 2000
"""How many of the newest runs or sweeps a shortened id is looked up in."""


@dataclass(frozen=True)
class Address:
    """What --url and --token said."""

    url: str | None = None
    token: str | None = None


def bench(context: typer.Context) -> RotBench:
    """The client for the address that the command line names; closed when the command ends."""
    address = context.obj if isinstance(context.obj, Address) else Address()
    client = RotBench(address.url, address.token)
    context.call_on_close(client.close)
    return client


def find_run(client: RotBench, text: str) -> Run:
    """The run of a whole id, or of the first characters of one.

    Raises:
        RotBenchError: No run, or more than one, has it.
    """
    found = _look_up(client, text, sweeps=False)
    assert isinstance(found, Run)
    return found


def find_sweep(client: RotBench, text: str) -> Sweep:
    """The sweep of a whole id, or of the first characters of one.

    Raises:
        RotBenchError: No sweep, or more than one, has it.
    """
    found = _look_up(client, text, runs=False)
    assert isinstance(found, Sweep)
    return found


def find_run_or_sweep(client: RotBench, text: str) -> Run | Sweep:
    """The run, or else the sweep, of a whole id or of the first characters of one.

    Raises:
        RotBenchError: None, or more than one, has it.
    """
    return _look_up(client, text)


def _look_up(client: RotBench, text: str, *, runs: bool = True, sweeps: bool = True) -> Run | Sweep:
    kind = "run or sweep" if runs and sweeps else "run" if runs else "sweep"
    try:
        whole = str(uuid.UUID(text))
    except ValueError:
        return _by_prefix(client, text.lower(), kind, runs, sweeps)
    for wanted, get in ((runs, client.run), (sweeps, client.get_sweep)):
        if wanted:
            try:
                return get(whole)
            except RotBenchError as error:
                if error.status != 404:
                    raise
    raise _unknown(kind, text)


def _by_prefix(client: RotBench, prefix: str, kind: str, runs: bool, sweeps: bool) -> Run | Sweep:
    found: list[Run | Sweep] = []
    if len(prefix) >= 4 and not set(prefix) - set("0123456789abcdef-"):
        if runs:
            found += [run for run in islice(client.runs(limit=200), LOOK_BACK) if run.id.startswith(prefix)]
        if sweeps:
            found += [sweep for sweep in islice(client.sweeps(), LOOK_BACK) if sweep.id.startswith(prefix)]
    if not found:
        raise _unknown(kind, prefix)
    if len(found) > 1:
        ids = ", ".join(item.id for item in found[:4])
        raise RotBenchError(f"{prefix} is the beginning of more than one id: {ids}", remedy="give more characters")
    return found[0]


def _unknown(kind: str, text: str) -> RotBenchError:
    return RotBenchError(
        f"there is no {kind} {text}",
        status=404,
        remedy="give an id, or at least its first 4 characters; `rotbench runs` and `rotbench sweeps` list them",
    )
