"""Which machine code does the GPU scan become on Hopper? Run as a script, no GPU needed: one JSON object per kernel.

A process of its own: pytest's shape checks would wrap the kernels before triton reads them.
"""

import json
import re
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

import torch
import triton
from triton.backends import nvidia
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from rotrnn_core.ops.scan import triton_kernels as kernels
from rotrnn_core.ops.scan.triton_scan import LEVELS, REGISTERS, scan_triton

TOOLS = Path(nvidia.__file__).parent / "bin"
POINTERS = {"ends": "fp32", "eigenvalues": "fp32", "jumps": "fp64", "correlations": "fp64"}
FORWARD = {"STARTED": True, "CORRELATED": False, "REVERSE": False}
BACKWARD = {"STARTED": False, "CORRELATED": True, "REVERSE": True}
VARIANTS = {
    "forward float32": (kernels.scan_kernel, "fp32", LEVELS, FORWARD),
    "backward float32": (kernels.scan_kernel, "fp32", LEVELS - 1, BACKWARD),
    "ends bfloat16": (kernels.ends_kernel, "bf16", LEVELS, {"REVERSE": False}),
}


def machine_code(kernel: triton.JITFunction, dtype: str, levels: int, flags: dict[str, bool]) -> dict[str, object]:
    """Registers, bytes of stack, and how often each memory instruction stands in the code."""
    constants = {"WIDTH": 512, "LEVELS": levels, **flags}
    types = {name: f"*{POINTERS.get(name, dtype)}" for name in kernel.arg_names}
    types |= {"time": "i32", "length": "i32"} | dict.fromkeys(constants, "constexpr")
    aligned = [name not in constants and name not in kernels.UNTOLD for name in kernel.arg_names]
    source = ASTSource(
        kernel,
        {name: types[name] for name in kernel.arg_names},
        constants,
        {(place,): [["tt.divisibility", 16]] for place, known in enumerate(aligned) if known},
    )
    options = {"num_warps": 1, "maxnreg": REGISTERS}
    compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(compiled.asm["cubin"])
        file.flush()
        usage = _output_of("cuobjdump", "-res-usage", file.name)
        code = _output_of("nvdisasm", "-c", file.name)
    counts = Counter(re.findall(r"\b(?:LDG|STG|LDL|STL|LDS|STS|SHFL|BAR)[.\w]*", code))
    found = re.search(r"REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)", usage)
    assert found is not None, usage
    registers, stack, shared, local = map(int, found.groups())
    return {"registers": registers, "stack": stack + local, "shared": shared, "memory": counts}


def _output_of(tool: str, *arguments: str) -> str:
    return subprocess.run([TOOLS / tool, *arguments], capture_output=True, text=True, check=True).stdout


def refusal_without_a_gpu() -> str:
    decay = torch.full((2,), 0.5, dtype=torch.float64)
    try:
        scan_triton(torch.zeros(1, 3, 4), decay, decay)
    except ValueError as error:
        return str(error)
    return "nothing"


def main() -> None:
    code = {name: machine_code(*variant) for name, variant in VARIANTS.items()}
    print(json.dumps({"code": code, "refusal": refusal_without_a_gpu()}))  # noqa: T201


if __name__ == "__main__":
    main()
