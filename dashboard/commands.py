"""How does one ask for the same without this page? As a command line, in Python, and with curl."""

import json
import pprint
import shlex
from typing import Any

from dashboard.orders import Order

LINE = 100


def command_line(order: Order) -> str:
    """`rotbench submit` or `rotbench sweep`."""
    words = ["rotbench sweep" if order.grid else "rotbench submit"]
    if order.recipe:
        words.append(f"--recipe {shlex.quote(order.recipe)}")
    words += [f"--set {shlex.quote(f'{name}={_compact(value)}')}" for name, value in order.settings.items()]
    words += [f"--grid {shlex.quote(f'{name}={_compact(values)}')}" for name, values in order.grid.items()]
    if order.name:
        words.append(f"--name {shlex.quote(order.name)}")
    if order.priority and order.priority != "normal":
        words.append(f"--priority {order.priority}")
    if order.reuse:
        words.append("--reuse")
    if order.match and order.grid:
        words.append(f"--match {order.match}")
    return _broken(words)


def repeated(order: Order) -> str:
    """`rotbench submit` with the whole configuration on its standard input."""
    words = ["rotbench submit"]
    if order.name:
        words.append(f"--name {shlex.quote(order.name)}")
    if order.priority:
        words.append(f"--priority {order.priority}")
    return f"{' '.join(words)} --config - <<'JSON'\n{json.dumps(order.config, indent=1)}\nJSON"


def python(order: Order) -> str:
    """The same with the client."""
    given = [f"config = {pprint.pformat(order.config, width=LINE, sort_dicts=False)}"]
    call = ["config"]
    if order.grid:
        given.append(f"grid = {pprint.pformat(order.grid, width=LINE, sort_dicts=False)}")
        call.append("grid")
    call += [f"{name}={value!r}" for name, value in (("name", order.name), ("priority", order.priority)) if value]
    if order.reuse:
        call.append('dedupe="reuse"')
    if order.grid and order.match:
        call.append(f'match="{order.match}"')
    verb, kind = ("sweep", "sweep") if order.grid else ("submit", "run")
    lines = [
        "from client import RotBench",
        "",
        *given,
        "",
        "with RotBench() as bench:  # finds the local stack, or ROTBENCH_URL and ROTBENCH_TOKEN",
        f"    {kind} = bench.{verb}({', '.join(call)})",
        f"    print(bench.wait({kind}))",
    ]
    return "\n".join(lines)


def curl(order: Order) -> str:
    """The same over REST."""
    noun = "sweeps" if order.grid else "runs"
    words = [
        f'curl --fail-with-body --silent --show-error "$ROTBENCH_URL/v1/{noun}"',
        '--header "Authorization: Bearer $ROTBENCH_TOKEN"',
        '--header "Content-Type: application/json"',
        f"--data {shlex.quote(json.dumps(body(order), indent=1))}",
    ]
    return _broken(words)


def body(order: Order) -> dict[str, Any]:
    """What is sent to the API."""
    sent: dict[str, Any] = {"name": order.name, "config": order.config, "priority": order.priority}
    if order.reuse:
        sent["dedupe"] = "reuse"
    if order.grid:
        sent |= {"grid": order.grid, "match": order.match}
    return {name: value for name, value in sent.items() if value is not None}


def _compact(value: Any) -> str:
    return value if isinstance(value, str) and value.strip() else json.dumps(value, separators=(",", ":"))


def _broken(words: list[str]) -> str:
    """Words on one line where they fit, else one word to a line."""
    whole = " ".join(words)
    return whole if len(whole) <= LINE and "\n" not in whole else " \\\n  ".join(words)
