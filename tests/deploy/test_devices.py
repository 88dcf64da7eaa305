"""Does each GPU get one worker, and a machine without any one on its CPU?"""

import pytest

from deploy.local import devices as module
from deploy.local.devices import devices


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine with four GPUs and a torch that can use them."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(module, "_present_gpus", lambda: 4)
    monkeypatch.setattr(module, "_torch_knows_cuda", lambda: True)
    return monkeypatch


def test_each_gpu_gets_a_worker(machine: pytest.MonkeyPatch) -> None:
    assert devices(None) == (["cuda:0", "cuda:1", "cuda:2", "cuda:3"], None)


@pytest.mark.parametrize(
    ("visible", "expected"), [("2,3", ["cuda:0", "cuda:1"]), ("0,-1,2", ["cuda:0"]), ("", ["cpu"]), ("-1", ["cpu"])]
)
def test_hidden_gpus_get_none(machine: pytest.MonkeyPatch, visible: str, expected: list[str]) -> None:
    machine.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert devices(None)[0] == expected


def test_two_workers_never_share_a_gpu(machine: pytest.MonkeyPatch) -> None:
    found, remark = devices(9)
    assert len(found) == len(set(found)) == 4
    assert remark is not None
    assert "there are 4" in remark


def test_a_torch_without_cuda_trains_on_the_cpu_and_says_so(machine: pytest.MonkeyPatch) -> None:
    machine.setattr(module, "_torch_knows_cuda", lambda: False)
    found, remark = devices(None)
    assert found == ["cpu"]
    assert remark is not None


def test_without_gpus_as_many_workers_as_wished_share_the_cpus(machine: pytest.MonkeyPatch) -> None:
    machine.setattr(module, "_present_gpus", lambda: 0)
    assert devices(None)[0] == ["cpu"]
    assert devices(3)[0] == ["cpu:0", "cpu:1", "cpu:2"]
    assert devices(0)[0] == []
