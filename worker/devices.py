"""Which device does this worker own, and does nobody else on this machine?"""

import fcntl
import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pynvml


@dataclass(frozen=True)
class Device:
    """One GPU, or a named slot of the CPUs.

    Args:
        name: "cuda:0" or "cpu:0".
        uuid: The GPU's own, the same from every process and container; for a slot, host and name.
        title: What a person calls it.
    """

    name: str
    uuid: str
    title: str

    @property
    def is_gpu(self) -> bool:
        """Whether training runs on a GPU."""
        return self.name.startswith("cuda:")


class DeviceUnusable(Exception):
    """There is no such device, or another process of this machine holds it; the text says which."""


def candidates(wanted: str, host: str) -> list[Device]:
    """The devices that satisfy a setting, the preferred one first.

    Args:
        wanted: "auto" (every visible GPU, or CPU slot 0 where there is none), "cpu" (slot 0), "cpu:N", or "cuda:N" with
            N counted among the visible GPUs.
        host: This machine's name.

    Raises:
        DeviceUnusable: The GPU asked for is not there.
    """
    gpus = [Device(f"cuda:{n}", uuid, title) for n, (uuid, title) in enumerate(_visible_gpus())]
    if wanted == "auto" and gpus:
        return gpus
    kind, _, number = wanted.partition(":")
    if kind != "cuda":
        slot = f"cpu:{number or 0}"
        return [Device(slot, f"{host}/{slot}", f"{os.cpu_count()} CPUs")]
    if int(number) >= len(gpus):
        raise DeviceUnusable(f"device {wanted} was asked for; GPUs visible here: {len(gpus)}")
    return [gpus[int(number)]]


def hold(device: Device, service: str) -> int:
    """Lock the device on this machine for as long as this process and its children live.

    Args:
        device: A GPU is locked for everybody; a CPU slot for the workers of one service.
        service: What tells one service from another: the address of its database.

    Returns:
        The descriptor that carries the lock.

    Raises:
        DeviceUnusable: Another process holds it.
    """
    scope = "" if device.is_gpu else "-" + hashlib.sha256(service.encode()).hexdigest()[:12]
    path = Path(tempfile.gettempdir()) / f"rotbench-{device.uuid.replace('/', '-')}{scope}.lock"
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except PermissionError as error:
        raise DeviceUnusable(f"device {device.name} is locked by another account: {path}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.read(descriptor, 32).decode(errors="replace").strip()
        os.close(descriptor)
        raise DeviceUnusable(f"device {device.name} is held by process {holder} of this machine: {path}") from error
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor


def _visible_gpus() -> list[tuple[str, str]]:
    """UUID and title of every GPU that CUDA_VISIBLE_DEVICES leaves, in its order."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return []
    try:
        handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
        gpus = [(pynvml.nvmlDeviceGetUUID(handle), pynvml.nvmlDeviceGetName(handle)) for handle in handles]
    finally:
        pynvml.nvmlShutdown()
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is None:
        return gpus
    visible = []
    for name in chosen.split(","):
        name = name.strip()
        matches = [gpu for index, gpu in enumerate(gpus) if name == str(index) or (name and gpu[0].startswith(name))]
        if len(matches) != 1:
            break
        visible.append(matches[0])
    return visible
