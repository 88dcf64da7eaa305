"""What do the tests of the door share? An app on a real database, and the store's own way of playing the worker."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import event, text

from api.app import create_app
from api.settings import Settings
from rotrnn_core.records import Divergence, HiddenNorms, Started, Statistic
from store import ingest, leases, tokens
from store.status import Status
from store.tables import Base

TOKEN = "a token for the tests"
TABLES = ("runs", "sweeps", "sweep_runs", "outbox", "idempotency_keys", "events")

_FILLED = sorted({table.name for table in Base.metadata.sorted_tables} - {"tokens"})


@dataclass
class Door:
    """The service on its own database, with a client that bears the token."""

    http: TestClient
    database_url: str

    @property
    def sessions(self) -> Any:
        return self.http.app.state.sessions  # type: ignore[attr-defined]

    def submit(self, **parts: Any) -> UUID:
        """Submit a run of the given configuration; its id."""
        answer = self.http.post("/v1/runs", json={"config": parts})
        assert answer.status_code == 202, answer.text
        return UUID(answer.json()["id"])

    def train(
        self,
        run_id: UUID,
        *,
        metrics: Sequence[tuple[str, int, float]] = (),
        norms: Mapping[int, Sequence[float]] | None = None,
        statistics: Sequence[Statistic] = ("relative",),
        logs: Sequence[str] = (),
        status: Status | None = Status.SUCCEEDED,
    ) -> None:
        """Claim the run, write what a worker would write, and end it; status None leaves it running."""
        with self.sessions() as session:
            claim = leases.claim(session, run_id, worker_id="w", lease_s=60, host="h", device="cpu")
            assert claim is not None
            batch = ingest.Batch(
                metrics=metrics,
                hidden_norms=[norms_of(step, s, mean) for step, mean in (norms or {}).items() for s in statistics],
                logs=[(n, datetime.now(UTC), "info", line) for n, line in enumerate(logs)],
                step=max((step for _, step, _ in metrics), default=None),
                started=Started(0, claim.total_steps, 123, "cpu", (0, 1), {"torch": "none"}),
            )
            ingest.write(session, run_id, claim.attempt, claim.token, batch)
            if status is not None:
                leases.finish(
                    session,
                    run_id,
                    claim.attempt,
                    claim.token,
                    status=status,
                    divergence=Divergence(7, 0, "activation") if status is Status.DIVERGED else None,
                )
            session.commit()

    @contextmanager
    def statements(self) -> Iterator[list[str]]:
        """The statements that the service executes meanwhile."""
        seen: list[str] = []

        def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
            seen.append(statement)

        engine = self.sessions.kw["bind"]
        event.listen(engine, "before_cursor_execute", note)
        yield seen
        event.remove(engine, "before_cursor_execute", note)

    def stored(self) -> dict[str, int]:
        """How many rows each table has that a request could write to."""
        with self.sessions() as session:
            return {t: session.execute(text(f"SELECT count(*) FROM {t}")).scalar_one() for t in TABLES}


def norms_of(step: int, statistic: Statistic, mean: Sequence[float]) -> HiddenNorms:
    """A record whose other entries follow from its means."""
    return HiddenNorms(
        step=step,
        statistic=statistic,
        mean=tuple(map(float, mean)),
        deviation=tuple(0.5 for _ in mean),
        minimum=tuple(value - 1.0 for value in mean),
        maximum=tuple(value + 1.0 for value in mean),
        non_finite=tuple(0 for _ in mean),
        profile=tuple((float(value), float(value)) for value in mean),
    )


@pytest.fixture(scope="session")
def open_door(make_database: Callable[[], str]) -> Iterator[Callable[[], Door]]:
    """A function that opens the service on a fresh database."""
    opened: list[TestClient] = []

    def make() -> Door:
        url = make_database()
        http = TestClient(
            create_app(Settings(database_url=url)),
            headers={"Authorization": f"Bearer {TOKEN}"},
            raise_server_exceptions=False,
        )
        opened.append(http)
        http.__enter__()
        door = Door(http, url)
        with door.sessions() as session:
            tokens.ensure(session, "tests", TOKEN)
            session.commit()
        return door

    yield make
    for http in opened:
        http.__exit__(None, None, None)


@pytest.fixture(scope="session")
def _emptied(open_door: Callable[[], Door]) -> Door:
    return open_door()


@pytest.fixture
def fresh(_emptied: Door) -> Door:
    """The service on an empty database."""
    with _emptied.sessions() as session:
        session.execute(text(f"TRUNCATE {', '.join(_FILLED)} CASCADE"))
        session.commit()
    return _emptied


@pytest.fixture(scope="module")
def door(open_door: Callable[[], Door]) -> Door:
    """The service on a database that the tests of one file share."""
    return open_door()
