"""Which devices of this machine get a worker?"""

import importlib.util
import os
import runpy
from pathlib import Path


def devices(workers: int | None) -> tuple[list[str], str | None]:
    """The devices that get one worker each.

    Args:
        workers: How many workers somebody asked for; None gives each GPU one, and a machine without any one on its CPU.

    Returns:
        The devices, such as ["cuda:0", "cuda:1"] or ["cpu"], and a remark that a person should read, if any.
    """
    gpus = _visible_gpus()
    if gpus and not _torch_knows_cuda():
        found, remark = 0, "a GPU is here, but the torch that is installed is built for CPUs: training on the CPU"
    else:
        found, remark = gpus, None
    if found == 0:
        count = 1 if workers is None else workers
        return (["cpu"] if count == 1 else [f"cpu:{slot}" for slot in range(count)]), remark
    if workers is not None and workers > found:
        remark = f"{workers} workers were asked for; each needs a GPU of its own, and there are {found}"
    return [f"cuda:{index}" for index in range(found if workers is None else min(workers, found))], remark


def _visible_gpus() -> int:
    """How many NVIDIA GPUs a process may use, found without torch."""
    allowed = os.environ.get("CUDA_VISIBLE_DEVICES")
    present = _present_gpus()
    if allowed is None or present == 0:
        return present
    names = [name.strip() for name in allowed.split(",")]
    usable = names.index("-1") if "-1" in names else len(names)
    return len([name for name in names[:usable] if name])


def _present_gpus() -> int:
    try:
        import pynvml
    except ImportError:
        return 0
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return 0
    try:
        return int(pynvml.nvmlDeviceGetCount())
    finally:
        pynvml.nvmlShutdown()


def _torch_knows_cuda() -> bool:
    """Whether torch was built for CUDA, read from its version file: importing torch takes seconds and memory."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return False
    return runpy.run_path(str(Path(spec.origin).parent / "version.py")).get("cuda") is not None
