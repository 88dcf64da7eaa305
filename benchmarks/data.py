"""How fast are data made, read and batched? One core; `--json` prints one object, with the unit in each key.

python benchmarks/data.py [--json] [--quick]
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rotrnn_core.config import RunConfig
from rotrnn_core.tasks import Loader, Sequences, contours, listops, listops_release, retrieval
from rotrnn_core.tasks.registry import LENGTHS
from rotrnn_core.training.loop import Control, _Run

OPERATORS = ("MIN", "MAX", "MED", "SM")
QUICK_SHARE = 10


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--quick", action="store_true", help="a tenth of the work, scaled up")
    parser.add_argument("--parse-table", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.parse_table:
        sys.stdout.write(json.dumps(parse_table(arguments.parse_table)))
        return
    torch.set_num_threads(1)
    share = QUICK_SHARE if arguments.quick else 1
    found: dict[str, float] = {}
    for measure in (generation, recursive_generation, released_trees, documents, pictures, loading):
        found |= measure(share)
    if arguments.json:
        sys.stdout.write(json.dumps(found) + "\n")
    else:
        for name, value in found.items():
            sys.stdout.write(f"{name:50} {value:,.1f}\n")


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Time on the processor, which a busy machine does not lengthen, and what came out."""
    began = time.process_time()
    result = work()
    return time.process_time() - began, result


def generation(share: int) -> dict[str, float]:
    """Full-length trees by our generator, distinct ones, splits and all."""
    count = 100_000 // share
    spent, _ = seconds(lambda: listops.generate(LENGTHS["listops"], 0, train=count - 2, validation=1, test=1))
    return {"listops_100000_examples_s": spent * share}


def recursive_generation(share: int) -> dict[str, float]:
    """The same grammar written as the published generator writes it, a node at a time, on a sample."""
    rng = np.random.default_rng(0)

    def tree(depth: int) -> Any:
        if rng.random() < listops.OPERATOR_SHARE and depth < listops.DEEPEST:
            return [rng.integers(4), *(tree(depth + 1) for _ in range(rng.integers(2, 11)))]
        return int(rng.integers(10))

    def length(node: Any) -> int:
        return 2 + sum(map(length, node[1:])) if isinstance(node, list) else 1

    def sample() -> int:
        return sum(500 < length(tree(1)) < 2000 for _ in range(20_000 // share))

    spent, kept = seconds(sample)
    return {"listops_100000_examples_by_recursion_s": spent / max(kept, 1) * 100_000}


def released_trees(share: int) -> dict[str, float]:
    """The released file's format, from the page cache."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "basic_train.tsv"
        with path.open("w") as file:
            file.write("Source\tTarget\n")
            rows = [_written(listops.draw(np.random.default_rng(seed), 5000, LENGTHS["listops"])) for seed in range(2)]
            lines = [line for row in rows for line in row]
            for _ in range(100_000 // share):
                file.write(lines[rng.integers(len(lines))])
        list(listops_release.trees(path))
        spent, _ = seconds(lambda: [None for _ in listops_release.trees(path)])
        return {"listops_release_mb_per_s": path.stat().st_size / 1e6 / spent}


def _written(trees: Sequences) -> Iterator[str]:
    """Trees as the release writes them, nested to the left in round brackets."""
    for index in range(len(trees)):
        stack: list[str] = []
        for token in trees.sequence(index)[:-1]:
            if token >= listops.CLOSE:
                whole = "]"
                parts = [whole]
                while not stack[-1].startswith("["):
                    parts.append(stack.pop())
                text = stack.pop()
                for part in reversed(parts):
                    text = f"( {text} {part} )"
                stack.append(text)
            else:
                stack.append(listops.VOCABULARY[token])
        yield f"{stack[0]}\t{trees.labels[index]}\n"


def documents(share: int) -> dict[str, float]:
    """A table shaped as that of Retrieval, in a process of its own whose memory is measured."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "new_aan_pairs.train.tsv"
        texts = [rng.integers(97, 123, size=27_000, dtype=np.uint8).tobytes() for _ in range(50)]
        with path.open("wb") as file:
            for number in range(10_000 // share):
                a, b = texts[number % 50], texts[(7 * number + 1) % 50]
                file.write(b"%d.0\t%d\t%d\t%b\t%b\n" % (number % 2, number, number + 1, a, b))
        size = path.stat().st_size / 1e6
        asked = subprocess.run(
            [sys.executable, __file__, "--parse-table", str(path)], capture_output=True, text=True, check=True
        )
    found = json.loads(asked.stdout)
    return {"retrieval_table_mb_per_s": size / found["s"], "retrieval_table_memory_mib": found["memory_mib"]}


def parse_table(path: Path) -> dict[str, float]:
    """Time to read a table, and the most memory that it took beyond what was taken before."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew: importing reached a higher one
    before = peak_mib()
    spent, _ = seconds(lambda: [None for _ in retrieval.pairs(path)])
    return {"s": spent, "memory_mib": peak_mib() - before}


def peak_mib() -> float:
    """The most resident memory of this process since the peak was last set back."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def pictures(share: int) -> dict[str, float]:
    """Pictures of contours, machine code made before."""
    contours.draw(0, 0, 1)
    count = 10_000 // share
    spent, _ = seconds(lambda: contours.draw(0, 0, count))
    return {"contours_pictures_per_s": count / spent}


def loading(share: int) -> dict[str, float]:
    """Batches from memory maps against the training step that uses them, in tokens of the clock's second."""
    config = RunConfig.from_dict(
        {
            "task": {"name": "listops-short", "train_size": 2000, "validation_size": 50, "test_size": 50},
            "model": {"cell": {"name": "rotrnn", "n_heads": 8}, "d_model": 32, "d_state": 32, "n_layers": 2},
            "training": {"batch_size": 32, "device": "cpu"},
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        run = _Run(config, Path(folder), Control())
        run.update()
        steps = max(5, 40 // share)
        for _ in range(steps):
            run.update()
        trained = run.loss().tokens_per_s
        loader = Loader(run.data.train, config.training.batch_size, seed=0)
        next(loader)
        began = time.perf_counter()
        tokens = sum(int(batch.lengths.sum()) for batch in islice(loader, 40 * steps))
        loaded = tokens / (time.perf_counter() - began)
    return {
        "loader_tokens_per_s": loaded,
        "training_tokens_per_s": trained,
        "loader_over_training_ratio": loaded / trained,
    }


if __name__ == "__main__":
    main()
