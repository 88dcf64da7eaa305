"""What can be done with data from a command line? `python -m rotrnn_core.tasks`, then list, fetch, import and others.

What is found goes to stdout, one JSON object a line; progress and what went wrong go to stderr. Exit codes: 0 done,
1 failed, 2 wrong usage.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from rotrnn_core.catalogue import TASKS
from rotrnn_core.config import TaskConfig
from rotrnn_core.tasks import release, storage
from rotrnn_core.tasks.dataset import Dataset
from rotrnn_core.tasks.download import Progress
from rotrnn_core.tasks.errors import DataMissing
from rotrnn_core.tasks.floors import floors
from rotrnn_core.tasks.registry import GENERATED, RELEASES, load

SAID_EVERY_S = 1.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m rotrnn_core.tasks")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, act in COMMANDS.items():
        command = commands.add_parser(name, help=act.__doc__)
        command.add_argument("--data-dir", type=Path, required=True)
        if name != "list":
            known = TASKS if name in ("prepare", "floor") else RELEASES
            task = command.add_argument("task", choices=sorted(known))
            task.nargs = "?" if name == "verify" else None
        if name == "import":
            command.add_argument("path", type=Path)
        if name == "prepare":
            command.add_argument("--data-seed", type=int, default=0)
    wanted = parser.parse_args(arguments)
    try:
        for found in COMMANDS[wanted.command](wanted):
            print(json.dumps(found), flush=True)  # noqa: T201
    except (DataMissing, ValueError) as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 1
    return 0


def _list(wanted: argparse.Namespace) -> list[dict[str, Any]]:
    """every task, and whether its data are here"""
    return [_state(name, wanted.data_dir) for name in TASKS]


def _state(name: str, data_dir: Path) -> dict[str, Any]:
    known = RELEASES.get(name)
    found = {
        "task": name,
        "title": TASKS[name].title,
        "licence": TASKS[name].licence,
        "generated": name in GENERATED,
        "download_bytes": sum(download.size for download in known.downloads) if known else 0,
    }
    if known is None:
        return found | {"state": "generated", "source": None}
    try:
        record = release.record_of(name, known, data_dir)
        source = release.at_hand(known, data_dir)
    except DataMissing as error:
        return found | {"state": "damaged", "source": str(error)}
    if record is not None and (data_dir / record.folder).exists():
        return found | {"state": "prepared", "source": record.source}
    if source is not None:
        return found | {"state": "at hand", "source": str(source)}
    return found | {"state": "generated" if name in GENERATED else "missing", "source": None}


def _fetch(wanted: argparse.Namespace) -> list[dict[str, Any]]:
    """download, check and prepare"""
    known = RELEASES[wanted.task]
    if not known.downloads:
        raise DataMissing(f"nobody offers {wanted.task} for download: import a copy of it")
    _tell_terms(wanted.task, known)
    source = release.fetch_all(known, wanted.data_dir, _progress())
    return [_prepared(wanted.task, release.prepare(wanted.task, known, source, wanted.data_dir), wanted.data_dir)]


def _tell_terms(name: str, known: release.Release) -> None:
    size = sum(download.size for download in known.downloads)
    unproven = [download.name for download in known.downloads if download.sha256 is None]
    lines = [
        f"{TASKS[name].title}: {size / 1e6:,.1f} MB",
        f"licence: {TASKS[name].licence}",
        f"cite: {TASKS[name].citation}",
    ]
    if unproven:
        lines.append(
            f"no hash is published for {', '.join(unproven)}: trusted on first use, and held to it from then on"
        )
    print("\n".join(lines), file=sys.stderr, flush=True)  # noqa: T201


def _progress() -> Progress:
    said_at = 0.0

    def say(have: int, total: int) -> None:
        nonlocal said_at
        if have == total or time.monotonic() - said_at > SAID_EVERY_S:
            said_at = time.monotonic()
            print(f"  {have / 1e6:,.1f} of {total / 1e6:,.1f} MB", file=sys.stderr, flush=True)  # noqa: T201

    return say


def _import(wanted: argparse.Namespace) -> list[dict[str, Any]]:
    """read official files, an archive or a folder, and prepare"""
    made = release.prepare(wanted.task, RELEASES[wanted.task], wanted.path, wanted.data_dir)
    return [_prepared(wanted.task, made, wanted.data_dir)]


def _verify(wanted: argparse.Namespace) -> list[dict[str, Any]]:
    """read every byte of what is prepared, and hold it against its hashes"""
    found = []
    for name in [wanted.task] if wanted.task else RELEASES:
        record = release.record_of(name, RELEASES[name], wanted.data_dir)
        if record is None and wanted.task:
            raise DataMissing(f"the data of {name} are not prepared in {wanted.data_dir}")
        if record is not None:
            if storage.verify(wanted.data_dir / record.folder) != record.content:
                raise DataMissing(f"{wanted.data_dir / record.folder} is not what its record says; prepare it anew")
            found.append(_prepared(name, record, wanted.data_dir))
    return found


def _prepare(wanted: argparse.Namespace) -> list[dict[str, Any]]:
    """make the arrays that runs read, before the first run asks for them"""
    if wanted.task in GENERATED:
        dataset = load(TaskConfig(name=wanted.task, data_seed=wanted.data_seed), wanted.data_dir)
        return [{"task": wanted.task, **_sizes(dataset)}]
    known = RELEASES[wanted.task]
    release.load(wanted.task, known, wanted.data_dir)
    record = release.record_of(wanted.task, known, wanted.data_dir)
    assert record is not None
    return [_prepared(wanted.task, record, wanted.data_dir)]


def _floor(wanted: argparse.Namespace) -> list[dict[str, Any]]:
    """what a simple method reaches that looks at no order"""
    name = wanted.task
    if name in GENERATED:
        dataset = load(TaskConfig(name=name), wanted.data_dir)
    else:
        dataset = release.load(name, RELEASES[name], wanted.data_dir)
    return [{"task": name, **asdict(floors(dataset, TASKS[name]))}]


def _prepared(name: str, record: release.Prepared, data_dir: Path) -> dict[str, Any]:
    place = data_dir / record.folder
    dataset = storage.read(place)
    return {
        "task": name,
        "folder": str(place),
        "content_sha256": record.content,
        "source": record.source,
        "archives": record.archives,
        **_sizes(dataset),
        "complete": all(len(getattr(dataset, s)) == getattr(TASKS[name], f"{s}_size") for s in release.sizes(dataset)),
    }


def _sizes(dataset: Dataset) -> dict[str, Any]:
    share = {split: _majority(dataset, split) for split in release.sizes(dataset)}
    return {"examples": release.sizes(dataset), "majority": share}


def _majority(dataset: Dataset, split: str) -> float:
    labels = getattr(dataset, split).labels
    return round(float(np.bincount(labels).max() / len(labels)), 4)


COMMANDS: dict[str, Callable[[argparse.Namespace], list[dict[str, Any]]]] = {
    "list": _list,
    "fetch": _fetch,
    "import": _import,
    "verify": _verify,
    "prepare": _prepare,
    "floor": _floor,
}

if __name__ == "__main__":
    sys.exit(main())
