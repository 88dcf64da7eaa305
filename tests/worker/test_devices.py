"""Does a worker own its device alone?"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from worker import devices
from worker.devices import Device, DeviceUnusable, candidates, hold

GPUS = [("GPU-aa", "A"), ("GPU-bb", "B")]


def names(wanted: str) -> list[str]:
    return [device.name for device in candidates(wanted, "host")]


def test_without_gpus_auto_is_the_first_cpu_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_visible_gpus", list)
    assert names("auto") == names("cpu") == names("cpu:0") == ["cpu:0"]
    assert candidates("cpu:3", "host")[0].uuid == "host/cpu:3"
    with pytest.raises(DeviceUnusable, match="cuda:0 was asked for"):
        candidates("cuda:0", "host")


def test_with_gpus_auto_is_any_of_them_and_a_number_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_visible_gpus", lambda: GPUS)
    assert names("auto") == ["cuda:0", "cuda:1"]
    assert [device.uuid for device in candidates("cuda:1", "host")] == ["GPU-bb"]
    assert names("cpu") == ["cpu:0"]


def test_a_device_is_held_by_one_process_of_a_service_until_that_ends(tmp_path: Path) -> None:
    device = Device("cpu:0", f"{tmp_path.name}-{os.getpid()}/cpu:0", "CPUs")
    script = (
        "import sys, time; from worker.devices import Device, hold;"
        f"hold({device!r}, 'one'); print('held', flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    with pytest.raises(DeviceUnusable, match=f"cpu:0 is held by process {holder.pid}"):
        hold(device, "one")
    os.close(hold(device, "another service"))
    holder.kill()
    holder.wait()
    holder.stdout.close()
    os.close(hold(device, "one"))
