"""Is what the door has promised kept, when the door or everything behind it is killed or replaced? Real processes."""

import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import httpx2
import pytest
from service import Service
from sqlalchemy import func, select, text

from deploy.local import ports
from rotrnn_core.config import RunConfig
from rotrnn_core.records import Record
from store import tokens
from store.status import Outcome, Status
from store.tables import RunRow

pytestmark = pytest.mark.slow

Trained = Callable[[RunConfig], list[Record]]
KEY = {"Idempotency-Key": "one"}


def _opened(service: Service, port: int) -> subprocess.Popen[bytes]:
    """A new API process that answers."""
    process: subprocess.Popen[bytes] = service.start_api(port)

    def answers() -> bool:
        try:
            return httpx2.get(f"http://{ports.LOOPBACK}:{port}/readyz", trust_env=False).status_code == 200
        except httpx2.TransportError:
            return False

    service.until(answers, "answer of the API", 60)
    return process


def test_a_promise_outlives_the_door_and_everything_behind_it(
    service: Service, trained: Trained, tiny: Callable[..., RunConfig]
) -> None:
    config, port = tiny(300), ports.next_free_port(8300)
    body = {"config": config.to_dict()}
    door = httpx2.Client(
        base_url=f"http://{ports.LOOPBACK}:{port}", headers={"Authorization": "Bearer t"}, timeout=60, trust_env=False
    )

    def post(_: int = 0) -> httpx2.Response:
        return door.post("/v1/runs", json=body, headers=KEY)

    def stored() -> int:
        with service.sessions() as session:
            return int(session.scalar(select(func.count()).select_from(RunRow)))

    with service.sessions() as session:
        tokens.ensure(session, "tests", "t")

    api = _opened(service, port)
    with ThreadPoolExecutor(50) as pool:
        with service.sessions() as session:
            session.execute(text("LOCK TABLE outbox IN SHARE MODE"))
            asked = pool.submit(post)
            waits = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
            service.until(lambda: session.scalar(waits), "a submission on its way")
            api.kill()
        with pytest.raises(httpx2.TransportError):
            asked.result()
        assert stored() == 0, "killed before its commit, it has promised nothing"
        api = _opened(service, port)
        answers = list(pool.map(post, range(50)))
    assert {answer.status_code for answer in answers} <= {202, 409}
    (run_id,) = {UUID(answer.json()["id"]) for answer in answers if answer.status_code == 202}
    assert all("Retry-After" in answer.headers for answer in answers if answer.status_code == 409)
    api.kill()
    api.wait()
    assert (stored(), service.run(run_id).status) == (1, Status.QUEUED)

    dispatcher, worker = service.start_dispatcher(), service.start_worker()
    trainer = service.hold(run_id, 30)
    api = _opened(service, port)
    assert post().json()["id"] == str(run_id), "the same answer, also from another process"
    for process in (dispatcher, api):
        process.terminate()
        assert process.wait(60) in (0, -signal.SIGTERM)
    migrated = [sys.executable, "-m", "store.migrate"]
    environment = {"ROTBENCH_DATABASE_URL": service.database_url, "PATH": ""}
    subprocess.run(migrated, env=environment, check=True, capture_output=True, timeout=120)
    worker.terminate()
    trainer.resume()
    assert worker.wait(60) == 0
    service.start_dispatcher()
    service.start_worker()
    service.wait(run_id, Status.SUCCEEDED, within_s=180)
    service.holds_exactly(run_id, trained(config))
    service.keeps_its_promises(run_id)
    given_back, succeeded = service.attempts(run_id)
    assert (given_back.outcome, succeeded.outcome) == (Outcome.GAVE_BACK, Outcome.SUCCEEDED)
    assert succeeded.resumed_from_attempt == 1
    assert succeeded.resumed_from_step >= 30
    assert not trainer.is_running()
    door.close()
