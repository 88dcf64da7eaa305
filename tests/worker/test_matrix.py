"""Does a run end as it would have, whoever is killed, stopped or told to stop at whatever moment? Real processes.

The moments in the middle of training are those of test_deaths.py; here are the narrow ones. All the
while the clocks of worker and dispatcher are wrong by an hour, each in its own direction.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import psutil
import pytest
from service import Service, gone

from deploy.local.servers import EmbeddedRedis
from rotrnn_core.config import RunConfig
from rotrnn_core.records import Record
from store.status import Status

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("matrix")]

Trained = Callable[[RunConfig], list[Record]]

MOMENTS: dict[str, Callable[[Service, Any], AbstractContextManager[psutil.Process]]] = {
    "claimed": lambda service, run_id: service.held(".jsonl.new"),
    "about to train": lambda service, run_id: service.held("trainer"),
    "during a checkpoint": lambda service, run_id: service.held(".partial"),
    "during the final write": lambda service, run_id: service.held_at_its_end(run_id),
}
"""Where a run is held while something befalls it."""


def _family(service: Service) -> list[psutil.Process]:
    """The worker's main process and all that it started, the youngest first."""
    main = psutil.Process(service.children["worker"].pid)
    return [*main.children(recursive=True)[::-1], main]


def _stop(service: Service) -> Callable[[Any], None]:
    """Stand still; what is returned waits until the lease is taken, and lets go on."""
    frozen = _family(service)
    for process in frozen:
        process.suspend()

    def go_on(run_id: Any) -> None:
        lost = "the lease taken from a worker that stands still"
        service.until(lambda: service.run(run_id).status is Status.QUEUED, lost, 120)
        for process in frozen:
            process.resume()

    return go_on


FAULTS: dict[str, Callable[[Service], Callable[[Any], None] | None]] = {
    "kill -9 of the trainer": lambda service: service.trainer().kill(),
    "kill -9 of the pool child": lambda service: service.pool_child().kill(),
    "kill -9 of the main process": lambda service: service.children["worker"].kill(),
    "SIGTERM to the pool child": lambda service: service.pool_child().terminate(),
    "SIGTERM to the main process": lambda service: service.children["worker"].terminate(),
    "SIGSTOP past the lease": _stop,
}
"""What befalls it; a fault that lasts returns how it ends."""

WHOLE = [
    (moment, fault)
    for moment in MOMENTS
    for fault in FAULTS
    if (moment == "about to train") == ("trainer" in fault)
    or (moment, "trainer" in fault) == ("during a checkpoint", True)
]
COVERING = [
    ("claimed", "kill -9 of the main process"),
    ("claimed", "SIGSTOP past the lease"),
    ("about to train", "kill -9 of the trainer"),
    ("during a checkpoint", "kill -9 of the pool child"),
    ("during a checkpoint", "SIGTERM to the main process"),
    ("during the final write", "SIGSTOP past the lease"),
    ("during the final write", "SIGTERM to the pool child"),
]
"""Every moment and every fault; ROTBENCH_TEST_MATRIX=whole runs all of their pairs."""
CASES = WHOLE if os.environ.get("ROTBENCH_TEST_MATRIX") == "whole" else COVERING


@pytest.fixture(scope="module")
def matrix(
    make_database: Callable[[], str],
    redis_server: EmbeddedRedis,
    tmp_path_factory: pytest.TempPathFactory,
    data_dir: Path,
    open_service: Callable[..., AbstractContextManager[Service]],
) -> Iterator[Service]:
    """A service with a dispatcher, for all tests of this file."""
    redis_server.start()
    folder = tmp_path_factory.mktemp("matrix")
    with open_service(make_database(), redis_server.url_of(2), folder, data_dir) as made:
        made.start_dispatcher(WORKER_TEST_CLOCK_S="-3600")
        yield made


@pytest.fixture
def config(tiny: Callable[..., RunConfig]) -> RunConfig:
    return tiny(12, checkpoint_every=5, evaluate_every=6)


def _with_a_worker(service: Service) -> Service:
    """The service, with a worker: the one that is there, or a new one."""
    if "worker" not in service.children or service.children["worker"].poll() is not None:
        service.start_worker(WORKER_TEST_CLOCK_S="3600")
    return service


@pytest.mark.parametrize(("moment", "fault"), CASES)
def test_a_run_ends_as_it_would_have(
    matrix: Service, config: RunConfig, trained: Trained, moment: str, fault: str
) -> None:
    service = _with_a_worker(matrix)
    run_id = service.add(config)
    with MOMENTS[moment](service, run_id) as held:
        lasting = FAULTS[fault](service)
        if fault.startswith("kill -9"):
            service.until(lambda: gone(held), "death of the held process")
    if lasting is not None:
        lasting(run_id)
    if "main process" in fault:
        service.children["worker"].wait(60)
        service.only_left("dispatcher")
    _with_a_worker(service).wait(run_id, Status.SUCCEEDED, within_s=180)
    service.until_idle()
    service.holds_exactly(run_id, trained(config))
    service.keeps_its_promises(run_id)
    assert service.run(run_id).attempts_charged == (
        0 if fault.startswith("SIGTERM") else service.run(run_id).attempt - 1
    )
    assert not list((service.folder / "spool").glob("*.jsonl"))


def test_a_full_disk_costs_the_checkpoints_and_not_the_run(
    matrix: Service, config: RunConfig, trained: Trained
) -> None:
    service = _with_a_worker(matrix)
    run_id = service.add(config)
    with service.held("trainer") as trainer:
        trainer.rlimit(psutil.RLIMIT_FSIZE, (0, 0))
    service.wait(run_id, Status.SUCCEEDED, within_s=180)
    service.holds_exactly(run_id, trained(config))
    service.keeps_its_promises(run_id)
    assert service.run(run_id).attempt == 1
    missed = [line for line in service.log_of(run_id) if "training goes on" in line]
    assert [line.partition(",")[0] for line in missed] == [f"no checkpoint of step {step}" for step in (5, 10, 12)]
    assert service.checkpoints(run_id) == []


def test_a_run_that_waits_outlives_every_worker(matrix: Service, config: RunConfig, trained: Trained) -> None:
    service = _with_a_worker(matrix)
    service.until_idle()
    service.pool_child().suspend()
    run_id = service.add(config)
    for end in (signal.SIGKILL, signal.SIGKILL):
        service.children["worker"].send_signal(end)
        service.children["worker"].wait(60)
        _with_a_worker(service)
    service.wait(run_id, Status.SUCCEEDED, within_s=180)
    service.holds_exactly(run_id, trained(config))
    service.keeps_its_promises(run_id)


def test_a_pool_child_that_stands_still_for_good_is_replaced(
    matrix: Service, config: RunConfig, trained: Trained
) -> None:
    service = _with_a_worker(matrix)
    run_id = service.add(config)
    with service.held("trainer"):
        child = service.pool_child()
        child.suspend()
    service.until(lambda: gone(child), "end of the child", 120)
    service.wait(run_id, Status.SUCCEEDED, within_s=180)
    service.holds_exactly(run_id, trained(config))
    service.keeps_its_promises(run_id)
