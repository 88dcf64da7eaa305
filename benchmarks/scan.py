"""How far is a layer's scan from the machine's limit, and from what else is public? One run, interleaved rounds.

    python benchmarks/scan.py
    python benchmarks/scan.py --json --sizes S M --no-peers
    python benchmarks/scan.py --growth --plots docs/pictures
    python benchmarks/scan.py --threads 1 --clock processor

A layer is u -> drive u -> scan -> read h + skip * u. Every form is first held against float64, all gradients included.
The limit is the larger of the projections' operations at the rate of a matrix product and the bytes at the rate of a
copy, both measured in the same rounds. Peers run in a virtual environment of their own, made at the first use; the
packages' own layers keep their own parameters, so their outputs are not compared. On a machine that others use, one
thread and its processor time still say what an idle machine would.
"""

import argparse
import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scan_costs
import torch
from scan_forms import FORMS, SIZES, SMALL_ONLY, Layer, Size, gradients, layer_of, worst_error

CLOCKS = {"wall": time.perf_counter, "processor": time.process_time}
PACKAGES = {"jax": ["jax_associative", "jax_scan"], "s5-pytorch": ["s5_pytorch"], "LRU-pytorch": ["lru_pytorch"]}
PACKAGES |= {"lrnnx": ["lrnnx_lru"]}
TOLERANCE = 1e-4
INSTALL_S = 600
Figures = dict[str, float | str]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    parser.add_argument("--peers", type=Path, default=Path(".rotbench/peers"), help="the peers' environment")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--growth", action="store_true", help="time over each axis of the size")
    parser.add_argument("--plots", type=Path, help="folder for the figure of --growth")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    clock = CLOCKS[options.clock]
    figures: Figures = {
        "machine": _processor(),
        "versions": f"torch {torch.__version__}, python {platform.python_version()}",
        "threads": float(options.threads),
        "clock": options.clock,
    }
    with peers(None if options.no_peers else options.peers) as ask:
        for name in options.sizes:
            figures |= side_by_side(name, SIZES[name], ask, options)
    for form in ("fused", "states_kept", "plain_torch"):
        large = SIZES["L"]
        (peak,) = scan_costs.peak_memory_mb(form, [large])
        figures[f"L.{form}.peak_memory_mb"] = peak
        figures[f"L.{form}.peak_memory_over_y_and_du_ratio"] = peak * 1e6 / large.forward_bytes
    figures |= scan_costs.first_call_s()
    figures |= scan_costs.streaming(clock, options.rounds)
    figures["long_memory.worst_error_ratio"] = scan_costs.long_memory_error()
    if options.growth:
        grown = scan_costs.growth(clock, max(3, options.rounds // 3))
        for axis, rows in grown.items():
            sizes = rows["size"]
            for name, values in rows.items():
                if name != "size":
                    figures |= {f"growth.{axis}.{int(at)}.{name}": x for at, x in zip(sizes, values, strict=True)}
        times = grown["time"]
        figures["growth.time.fused.exponent_ratio"] = scan_costs.exponent(times["size"], times["fused.both_ms"])
        if options.plots:
            figures["growth.picture"] = str(scan_costs.plot(grown, options.plots))
    if options.json:
        sys.stdout.write(json.dumps(figures) + "\n")
    else:
        for key, value in figures.items():
            sys.stdout.write(f"{key:<52} {value:>14.5g}\n" if isinstance(value, float) else f"{key:<52} {value}\n")


def side_by_side(name: str, size: Size, ask: "Ask", options: argparse.Namespace) -> Figures:
    """Every form at one size: error, then times over the limit of the same rounds."""
    clock, layer = CLOCKS[options.clock], layer_of(size)
    exact = [x.detach() for x in gradients(FORMS["fused"], layer_of(size, torch.float64))]
    chosen = [form for form in FORMS if name == "S" or form not in SMALL_ONLY]
    figures: Figures = {}
    for form in chosen:
        error = worst_error(gradients(FORMS[form], layer), exact)
        figures[f"{name}.{form}.worst_error_ratio"] = error
        if not error < TOLERANCE:
            raise SystemExit(f"{form} at {name} is off by {error:.1e} from float64: no figure of it means anything")
    others = [form for forms in PACKAGES.values() for form in forms if name == "S" or form not in SMALL_ONLY]
    others = [form for form in others if ask.open(form, layer, exact, f"{name}.{form}", figures, options.threads)]
    forward: dict[str, list[float]] = {form: [] for form in [*chosen, *others]}
    both: dict[str, list[float]] = {form: [] for form in [*chosen, *others]}
    products, copies = [], []
    for turn in range(options.rounds):
        product_s, copy_s = _limits(size, layer, clock)
        products.append(product_s)
        copies.append(copy_s)
        for form in chosen:
            if form in SMALL_ONLY and turn > 0:
                continue
            began = clock()
            y = FORMS[form](layer)
            half = clock()
            torch.autograd.grad(y, layer.inputs(), layer.arriving)
            forward[form].append(half - began)
            both[form].append(clock() - began)
        for form in others:
            if form in SMALL_ONLY and turn > 0:
                continue
            took = ask.time(form, options.clock)
            forward[form].append(took["forward_s"])
            both[form].append(took["both_s"])
    product, copy = statistics.median(products), statistics.median(copies)
    limit = max(2 * product, copy)
    limit_both = max(6 * product, 2.5 * copy)
    figures[f"{name}.product_gflops"] = size.forward_flops / 2 / product / 1e9
    figures[f"{name}.limit.forward_ms"], figures[f"{name}.limit.both_ms"] = 1e3 * limit, 1e3 * limit_both
    for form in forward:
        one, two = statistics.median(forward[form]), statistics.median(both[form])
        figures[f"{name}.{form}.forward_ms"] = 1e3 * one
        figures[f"{name}.{form}.forward_over_limit_ratio"] = one / limit
        figures[f"{name}.{form}.both_ms"] = 1e3 * two
        figures[f"{name}.{form}.both_over_limit_ratio"] = two / limit_both
        figures[f"{name}.{form}.both_over_fused_ratio"] = two / statistics.median(both["fused"])
    return figures


def _limits(size: Size, layer: Layer, clock: Callable[[], float]) -> tuple[float, float]:
    """Seconds of one projection, and of reading u and writing y, on memory that lies ready."""
    with torch.no_grad():
        rows, room = layer.u.detach().view(-1, size.d_model), torch.zeros(size.batch * size.time, 2 * size.pairs)
        target = torch.zeros_like(layer.u)
        began = clock()
        torch.mm(rows, layer.drive.mT, out=room)
        between = clock()
        target.copy_(layer.u)
        return between - began, clock() - between


class Ask:
    """The way to the peers' process; without one it opens nothing."""

    def __init__(self, process: "subprocess.Popen[str] | None", folder: Path, missing: dict[str, str]) -> None:
        self._process = process
        self._folder = folder
        self._missing = missing

    def open(
        self, form: str, layer: Layer, exact: list[torch.Tensor], name: str, figures: Figures, threads: int
    ) -> bool:
        """Have a form made ready on this layer and compared where it computes the same; whether it runs."""
        if self._process is None:
            return False
        answer = {"error": self._missing[form]} if form in self._missing else self._begin(form, layer, threads)
        if "error" in answer:
            figures[f"{name}.absent"] = answer["error"]
            return False
        if answer["compared"]:
            with np.load(self._folder / "outputs.npz") as found:
                figures[f"{name}.worst_error_ratio"] = worst_error(
                    [torch.from_numpy(found[key]) for key in found.files], exact
                )
        return True

    def time(self, form: str, clock: str) -> dict[str, Any]:
        """Seconds of one forward, and of one forward and backward."""
        return self._send({"form": form, "clock": clock})

    def _begin(self, form: str, layer: Layer, threads: int) -> dict[str, Any]:
        arrays = {name: x.detach().numpy() for name, x in vars(layer).items()}
        np.savez(self._folder / "layer.npz", **arrays)
        outputs = str(self._folder / "outputs.npz")
        request = {"form": form, "layer": str(self._folder / "layer.npz"), "threads": threads, "outputs": outputs}
        return self._send(request)

    def _send(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(request), file=self._process.stdin, flush=True)
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer


@contextmanager
def peers(environment: Path | None) -> Iterator[Ask]:
    """The peers' process, in their environment, which is made where it is not there yet."""
    with tempfile.TemporaryDirectory() as folder:
        if environment is None:
            yield Ask(None, Path(folder), {})
            return
        missing = _install(environment)
        command = [str(environment / "bin" / "python"), str(Path(__file__).with_name("scan_peers.py"))]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        try:
            yield Ask(process, Path(folder), missing)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(60)


def _install(environment: Path) -> dict[str, str]:
    """Forms whose package does not install here, each with the reason."""
    if not (environment / "bin" / "python").exists():
        venv.create(environment, with_pip=True)
    missing: dict[str, str] = {}
    for package, forms in {f"torch=={torch.__version__.partition('+')[0]}": [], **PACKAGES}.items():
        marker = environment / f"{package}.installed"
        if marker.exists():
            continue
        reason = _pip(environment, package)
        if reason is None:
            marker.touch()
        else:
            missing |= dict.fromkeys(forms, reason)
    return missing


def _pip(environment: Path, package: str) -> str | None:
    """Install one package; the reason where that fails or takes too long."""
    command = [str(environment / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-input", package]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_S, check=False)
    except subprocess.TimeoutExpired:
        return f"{package} did not install within {INSTALL_S} s"
    if done.returncode == 0:
        return None
    return (done.stderr.strip().splitlines() or ["pip failed"])[-1]


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()}, {len(names)} processors seen"


if __name__ == "__main__":
    main()
