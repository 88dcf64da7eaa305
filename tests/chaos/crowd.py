"""Which runs are under way, and what has been asked of them? Submitted and steered through the API alone."""

import contextlib
import random
import uuid
from uuid import UUID

import httpx2
from grounds import TOKEN, Site, config_of
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from deploy.local import ports
from store.status import TERMINAL, FailureClass, Status
from store.tables import RunRow

UNDER_WAY = 4
STEPS = (30, 60, 120)


class Crowd:
    """The runs of one crowd."""

    def __init__(self, site: Site, sessions: sessionmaker[Session], dice: random.Random) -> None:
        self.site = site
        self.sessions = sessions
        self.dice = dice
        self.http = httpx2.Client(
            base_url=f"http://{ports.LOOPBACK}:{site.port}", headers={"Authorization": f"Bearer {TOKEN}"}, timeout=8
        )
        self.submitted: dict[UUID, int] = {}
        self.asked: dict[str, int] = {}
        """Idempotency keys whose answer has not come yet."""
        self.cancelled: set[UUID] = set()
        self.resumed = 0

    def states(self) -> dict[UUID, RunRow]:
        with self.sessions() as session:
            return {run.id: run for run in session.scalars(select(RunRow))}

    def feed(self) -> None:
        """Keep a few runs under way; a submission without an answer is sent again with its key."""
        live = sum(run.status not in TERMINAL for run in self.states().values())
        for _ in range(live + len(self.asked), UNDER_WAY):
            self.asked[uuid.uuid4().hex] = self.dice.choice(STEPS)
        with contextlib.suppress(httpx2.TransportError):
            for key, steps in list(self.asked.items()):
                body = {"config": config_of(steps)}
                answer = self.http.post("/v1/runs", json=body, headers={"Idempotency-Key": key})
                if answer.status_code == 202:
                    self.submitted[UUID(answer.json()["id"])] = steps
                    del self.asked[key]

    def nurse(self) -> None:
        """Resume what spent its budget on our faults, as a person would, and what was paused."""
        for run_id, run in self.states().items():
            spent = run.status is Status.FAILED and run.failure_class is FailureClass.WORKER_LOST
            if spent or run.status is Status.PAUSED:
                self.resumed += self.ask(run_id, "resume")

    def ask(self, run_id: UUID, what: str) -> bool:
        with contextlib.suppress(httpx2.TransportError):
            return self.http.post(f"/v1/runs/{run_id}/{what}").status_code == 202
        return False

    def some_run(self) -> UUID | None:
        live = sorted(run_id for run_id, run in self.states().items() if run.status not in TERMINAL)
        return self.dice.choice(live) if live else None
