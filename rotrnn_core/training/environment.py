"""On what does a run run? The device, and what a reader needs to judge the numbers."""

import platform

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
        "torch": torch.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "device_name": torch.cuda.get_device_name(device) if on_cuda else _processor(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "cuda": str(torch.version.cuda) if on_cuda else "not used",
        "scan_backend": scan_backend,
        "threads": str(torch.get_num_threads()),
        "deterministic_algorithms": str(torch.are_deterministic_algorithms_enabled()),
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()
