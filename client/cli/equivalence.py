"""Is every LRU a RotRNN, as the paper says? `rotbench equivalence`, by `python -m rotrnn_core.equivalence`."""

import importlib.util
import json
import subprocess
import sys
from typing import Annotated, Any

import typer

from client.cli.ending import FAILED
from client.cli.output import Column, JsonOption, prose, table
from client.cli.stack import environment
from client.errors import RotBenchError


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("equivalence")(equivalence)


def equivalence(
    time: Annotated[int, typer.Option("--time", metavar="N", min=1, help="Length of the sequences.")] = 512,
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Of initial values and inputs.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Show LRU and RotRNN become each other. Cells and trained networks, converted, with the error of each.

    Runs on this machine, in seconds; it asks no API.
    """
    answer = measured(time, seed)
    if as_json:
        typer.echo(json.dumps(answer, indent=2))
    else:
        show(answer)
    bounds = answer["bound"]
    if any(max(one["outputs"], one["states"]) > bounds[one["dtype"]] for one in answer["differences"]):
        raise typer.Exit(FAILED)


def measured(time: int, seed: int) -> dict[str, Any]:
    """What the demonstration says.

    Raises:
        RotBenchError: torch is not installed, or the demonstration broke.
    """
    if importlib.util.find_spec("torch") is None:
        raise RotBenchError(
            "the demonstration converts networks, and torch is not installed",
            remedy="run: pip install 'rotbench[core]'",
        )
    command = [sys.executable, "-m", "rotrnn_core.equivalence", "--json", "--time", str(time), "--seed", str(seed)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True)
    try:
        said: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        last = (done.stderr.strip() or "it says nothing").splitlines()[-1]
        raise RotBenchError(f"the demonstration broke: {last}", remedy="run `rotbench doctor`") from None
    return said


def show(answer: dict[str, Any]) -> None:
    """The differences as a table, with what they mean."""
    prose(
        f"Both read the same {answer['time']:,} steps; a difference is the greatest over all outputs or hidden states, "
        "as a share of the greatest value. Cells are also held against the papers' equations, one step after another."
    )
    table(
        [
            Column("conversion"),
            Column("numbers"),
            Column("loss", 1, right=True),
            Column("outputs", right=True),
            Column("states", right=True),
        ],
        [
            [
                one["conversion"],
                one["dtype"],
                "-" if one["loss"] is None else f"{one['loss']:.3f}",
                f"{one['outputs']:.1e}",
                f"{one['states']:.1e}",
            ]
            for one in answer["differences"]
        ],
    )
    for dtype, bound in answer["bound"].items():
        found = [max(one["outputs"], one["states"]) for one in answer["differences"] if one["dtype"] == dtype]
        verdict = "nothing but rounding" if max(found) <= bound else "more than rounding"
        prose(f"{dtype}: at most {max(found):.1e}, {verdict} (bound {bound:.0e}).")
