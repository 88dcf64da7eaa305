"""On what does a run run? The device, and what a reader needs to judge the numbers."""

import hashlib
import importlib.metadata
import platform
import subprocess
from pathlib import Path

import numpy
import torch

from rotrnn_core.config import Backend, ConfigError, TrainingConfig
from rotrnn_core.version import code_version


def device_of(config: TrainingConfig) -> torch.device:
    """The device that a run asks for; "auto" takes CUDA where it answers.

    Raises:
        ConfigError: CUDA is asked for and does not answer.
    """
    available = torch.cuda.is_available()
    if config.device == "cuda" and not available:
        raise ConfigError("training.device", config.device, "no CUDA device answers on this machine; use auto or cpu")
    return torch.device("cuda" if config.device != "cpu" and available else "cpu")


def environment_of(device: torch.device, scan_backend: Backend) -> dict[str, str]:
    """Versions, hardware and the settings that decide whether a run repeats bit for bit."""
    on_cuda = device.type == "cuda"
    return {
        "code_version": code_version(),
        **_checkout(),
        "packages": _packages(),
        "host": platform.node(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "device_name": torch.cuda.get_device_name(device) if on_cuda else _processor(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "device_uuid": str(torch.cuda.get_device_properties(device).uuid) if on_cuda else "none",
        "cuda": str(torch.version.cuda) if on_cuda else "not used",
        "driver": _driver() if on_cuda else "not used",
        "scan_backend": scan_backend,
        "dtype": str(torch.get_default_dtype()).removeprefix("torch."),
        "threads": str(torch.get_num_threads()),
        "deterministic_algorithms": str(torch.are_deterministic_algorithms_enabled()),
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "cudnn_benchmark": str(torch.backends.cudnn.benchmark),
    }


def _checkout() -> dict[str, str]:
    """The commit of a checkout and whether it holds changes; unknown for an installed package or without git."""
    root = Path(__file__).parents[2]
    said = {"git_commit": "unknown", "git_dirty": "unknown"}
    if (root / ".git").exists():
        ask = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
        try:
            named = subprocess.run(ask, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
        except (OSError, subprocess.SubprocessError):
            return said
        commit, dirty, _ = named.partition("-dirty")
        return {"git_commit": commit, "git_dirty": str(bool(dirty))}
    return said


def _packages() -> str:
    """The first 16 hexadecimal digits of the SHA-256 of every installed distribution and its version, sorted."""
    found = {f"{each.metadata['Name']}=={each.version}".lower() for each in importlib.metadata.distributions()}
    return hashlib.sha256("\n".join(sorted(found)).encode()).hexdigest()[:16]


def _driver() -> str:
    try:
        with open("/proc/driver/nvidia/version", encoding="ascii", errors="replace") as file:
            return file.readline().strip()
    except OSError:
        return "unknown"


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()
