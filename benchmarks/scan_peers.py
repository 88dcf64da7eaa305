"""How fast are public implementations and other frameworks? A process in an environment of its own that answers lines.

Each line on stdin is a request, each on stdout its answer, both JSON. Forms: `jax_associative` (complex numbers, as
public LRU code writes it) and `jax_scan` (real pairs, one step after another), both from the formula; `s5_pytorch`,
`lru_pytorch` and `lrnnx_lru`, the packages' own layers at the same sizes with their own parameters.
"""

import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Run = Callable[[bool], Any]


def main() -> None:
    """Answer until stdin ends."""
    made: dict[str, Run] = {}
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = _answer(request, made)
        except Exception as error:  # noqa: BLE001 - a peer that does not run here is a result
            answer = {"error": f"{type(error).__name__}: {error}"[:200]}
        print(json.dumps(answer), file=answers, flush=True)


def _answer(request: dict[str, Any], made: dict[str, Run]) -> dict[str, Any]:
    form = request["form"]
    if "layer" in request:
        made.pop(form, None)
        made[form] = FORMS[form](dict(np.load(request["layer"])), request["threads"])
        found = made[form](True)
        if request["outputs"] is not None and found is not None:
            np.savez(Path(request["outputs"]), *found)
        return {"compared": found is not None}
    clock = time.process_time if request["clock"] == "processor" else time.perf_counter
    took = {}
    for name, backward in (("forward_s", False), ("both_s", True)):
        began = clock()
        made[form](backward)
        took[name] = clock() - began
    return took


def _jax(layer: dict[str, Any], sequential: bool) -> Run:
    jax = importlib.import_module("jax")
    jnp = importlib.import_module("jax.numpy")
    names = ("u", "drive", "read", "skip", "decay", "phase")
    given = [jnp.asarray(layer[name], dtype=jnp.float32) for name in names]
    arriving = jnp.asarray(layer["arriving"])

    def associative(u: Any, drive: Any, read: Any, skip: Any, decay: Any, phase: Any) -> Any:
        pairs = drive.shape[0] // 2
        inputs = u @ (drive[:pairs] + 1j * drive[pairs:]).T
        factor = jnp.broadcast_to(decay * jnp.exp(1j * phase), inputs.shape)

        def joined(one: Any, other: Any) -> Any:
            return one[0] * other[0], other[0] * one[1] + other[1]

        states = jax.lax.associative_scan(joined, (factor, inputs), axis=1)[1]
        return (states @ (read[:, :pairs] - 1j * read[:, pairs:]).T).real + u * skip

    def stepwise(u: Any, drive: Any, read: Any, skip: Any, decay: Any, phase: Any) -> Any:
        pairs = drive.shape[0] // 2
        inputs = jnp.swapaxes(u @ drive.T, 0, 1)
        a, b = decay * jnp.cos(phase), decay * jnp.sin(phase)

        def advance(state: Any, now: Any) -> Any:
            re, im = state
            state = (a * re - b * im + now[:, :pairs], a * im + b * re + now[:, pairs:])
            return state, jnp.concatenate(state, axis=-1)

        zero = jnp.zeros((u.shape[0], pairs), jnp.float32)
        states = jax.lax.scan(advance, (zero, zero), inputs)[1]
        return jnp.swapaxes(states, 0, 1) @ read.T + u * skip

    form = stepwise if sequential else associative
    forward = jax.jit(form)
    both = jax.jit(lambda *x: _with_gradients(jax, form, arriving, x))
    forward(*given).block_until_ready()

    def run(backward: bool) -> Any:
        if not backward:
            return forward(*given).block_until_ready()
        y, found = jax.block_until_ready(both(*given))
        return [np.asarray(y), *(np.asarray(x) for x in found)]

    return run


def _with_gradients(jax: Any, form: Callable[..., Any], arriving: Any, given: tuple[Any, ...]) -> Any:
    y, back = jax.vjp(form, *given)
    return y, back(arriving)


def _torch_layer(make: Callable[[int, int], Any], layer: dict[str, Any], threads: int) -> Run:
    torch = importlib.import_module("torch")
    torch.set_num_threads(threads)
    module = make(layer["u"].shape[-1], layer["drive"].shape[0] // 2)
    u, arriving = torch.tensor(layer["u"], requires_grad=True), torch.tensor(layer["arriving"])

    def run(backward: bool) -> None:
        y = module(u)
        y = y[0] if isinstance(y, tuple) else y
        if backward:
            y.backward(arriving)

    return run


def _s5(d_model: int, pairs: int) -> Any:
    return importlib.import_module("s5").S5(d_model, 2 * pairs)


def _lru_pytorch(d_model: int, pairs: int) -> Any:
    return importlib.import_module("LRU_pytorch").LRU(d_model, d_model, pairs)


def _lrnnx(d_model: int, pairs: int) -> Any:
    return importlib.import_module("lrnnx.models.lti").LRU(d_model=d_model, d_state=pairs)


FORMS: dict[str, Callable[[dict[str, Any], int], Run]] = {
    "jax_associative": lambda layer, _: _jax(layer, sequential=False),
    "jax_scan": lambda layer, _: _jax(layer, sequential=True),
    "s5_pytorch": lambda layer, threads: _torch_layer(_s5, layer, threads),
    "lru_pytorch": lambda layer, threads: _torch_layer(_lru_pytorch, layer, threads),
    "lrnnx_lru": lambda layer, threads: _torch_layer(_lrnnx, layer, threads),
}

if __name__ == "__main__":
    main()
