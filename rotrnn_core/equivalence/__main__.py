"""What does the demonstration say, to a person or to a program? `python -m rotrnn_core.equivalence [--json]`."""

import argparse
import dataclasses
import json
import sys

from rotrnn_core.equivalence.demonstration import BOUND, Difference, demonstrate


def main(arguments: list[str] | None = None) -> int:
    """Measure, write one line per conversion or one JSON object, and return 0 where nothing but rounding changed."""
    parser = argparse.ArgumentParser(prog="python -m rotrnn_core.equivalence", description=__doc__)
    parser.add_argument("--time", type=int, default=512, help="length of the sequences that both read")
    parser.add_argument("--seed", type=int, default=0, help="of initial values and inputs")
    parser.add_argument("--steps", type=int, default=60, help="updates of each network before it is converted")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    asked = parser.parse_args(arguments)
    if min(asked.time, asked.steps) < 1:
        parser.error(f"--time is {asked.time} and --steps is {asked.steps}: use whole numbers of at least 1")
    differences = demonstrate(time=asked.time, seed=asked.seed, steps=asked.steps)
    if asked.json:
        answer = {"bound": BOUND, "time": asked.time, "differences": [dataclasses.asdict(d) for d in differences]}
        sys.stdout.write(json.dumps(answer) + "\n")
    else:
        sys.stdout.writelines(map(_line, differences))
    return 0 if all(difference.is_rounding for difference in differences) else 1


def _line(difference: Difference) -> str:
    apart = f"outputs {difference.outputs:.1e}  states {difference.states:.1e}"
    return f"{difference.dtype}  {apart}  {difference.conversion}\n"


if __name__ == "__main__":
    sys.exit(main())
