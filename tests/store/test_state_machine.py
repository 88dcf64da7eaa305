"""Whatever happens in whatever order, is no run lost, doubled or stuck? A model beside the database, step by step.

Messages are doubled, lost and delivered late; zombies write with old tokens; leases run out; people cancel, pause and
resume meanwhile. After each step the database must say what the model says, and in the end every run comes to its end.
"""

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import func, select, text

from rotrnn_core import records
from store import ingest, metrics, outbox, requests, runs
from store.errors import IllegalMove, LeaseLost
from store.status import LEASED, RETRIES, TERMINAL, FailureClass, Status
from store.tables import AttemptRow, MetricRow, RunRow

BUDGET = 3
LEASE_S = 60.0
VALUES = [0.5, -0.0, math.nan, math.inf, -math.inf, 5e-324]
WAITING = (Status.QUEUED, Status.PAUSED)
ENDS = [(Status.SUCCEEDED, None), (Status.DIVERGED, None), *((Status.FAILED, each) for each in FailureClass)]
Life = dict[int, tuple[int, float]]


def bits(value: float) -> bytes:
    return struct.pack("d", value)


@dataclass
class Model:
    """What must be true of one run. `life` is its effective series: step to attempt and value."""

    status: Status = Status.QUEUED
    charged: int = 0
    due: bool = True
    holder: runs.Claim | None = None
    expired: bool = False
    pause: bool = False
    begun: set[int] = field(default_factory=lambda: {1})
    step: int = 0
    life: Life = field(default_factory=dict)
    written: int = 0
    checkpoints: dict[int, Life] = field(default_factory=dict)

    def holds(self, claim: runs.Claim) -> bool:
        return self.holder is claim

    def to(self, status: Status, *, due: bool = True) -> None:
        self.status, self.due = status, due
        if status not in LEASED:
            self.holder, self.expired, self.pause = None, False, False

    def fail(self, failure_class: FailureClass) -> None:
        self.charged += 1
        if RETRIES[failure_class] is None or self.charged >= BUDGET:
            self.to(Status.FAILED)
        elif self.pause:
            self.to(Status.PAUSED)
        else:
            self.to(Status.QUEUED, due=False)


class World(RuleBasedStateMachine):
    """Two runs, any number of workers, one broker that forgets and repeats."""

    def __init__(self, scene: Any) -> None:
        super().__init__()
        self.scene = scene
        self.session = scene.session
        self.models: dict[UUID, Model] = {}
        self.claims: list[runs.Claim] = []
        self.broker: list[UUID] = []

    def act(self, deed: Callable[[], Any], *refusals: type[Exception]) -> Any:
        """Do and commit; a refusal is taken back and returned."""
        try:
            done = deed()
            self.session.commit()
        except refusals as refusal:
            self.session.rollback()
            return refusal
        return done

    def as_holder(self, claim: runs.Claim, deed: Callable[..., Any], *given: Any, **options: Any) -> Any:
        """A deed that needs the lease; it must be refused exactly to those who do not have it."""
        done = self.act(
            lambda: deed(self.session, claim.run_id, claim.attempt, claim.token, *given, **options), LeaseLost
        )
        assert isinstance(done, LeaseLost) != self.models[claim.run_id].holds(claim)
        return None if isinstance(done, LeaseLost) else done

    @initialize()
    def submit_two(self) -> None:
        for _ in range(2):
            self.models[self.scene.add(attempt_budget=BUDGET, total_steps=1000)] = Model()

    # messages

    @rule(dies=st.booleans())
    def dispatch(self, dies: bool) -> None:
        """Publish; a dispatcher that dies before its commit publishes the same again later."""
        hints = [hint for hint in outbox.take(self.session) if hint.run_id in self.models]
        self.broker += [hint.run_id for hint in hints]
        if dies:
            self.session.rollback()
        else:
            outbox.mark_published(self.session, [hint.id for hint in hints])
            self.session.commit()

    @rule()
    def redis_is_emptied(self) -> None:
        self.broker.clear()

    @rule()
    def sweep(self) -> None:
        if len(self.broker) < outbox.waiting(self.session):
            outbox.sweep(self.session, 0.0)
        self.session.commit()

    @rule(data=st.data(), again=st.booleans())
    def deliver(self, data: st.DataObject, again: bool) -> None:
        """Any of the messages, in any order, once or more."""
        if not self.broker:
            self.dispatch(dies=again)
        if not self.broker:
            return
        place = data.draw(st.integers(0, len(self.broker) - 1))
        run_id = self.broker[place] if again else self.broker.pop(place)
        self.claim(run_id)

    def claim(self, run_id: UUID) -> None:
        model = self.models[run_id]
        claim = self.act(
            lambda: runs.claim(self.session, run_id, worker_id="w", lease_s=LEASE_S, host="h", device="cpu")
        )
        assert (claim is not None) == (model.status is Status.QUEUED and model.due)
        if claim is not None:
            model.to(Status.RUNNING)
            model.holder = claim
            model.step = 0
            self.claims.append(claim)

    @precondition(lambda self: any(model.holder for model in self.models.values()))
    @rule(data=st.data())
    def another_takes_over(self, data: st.DataObject) -> None:
        """The lease runs out, is taken, and another worker begins; the one before knows nothing of it."""
        run_id = data.draw(st.sampled_from([run_id for run_id, model in self.models.items() if model.holder]))
        self.scene.expire(run_id)
        self.models[run_id].expired = True
        self.reap()
        if self.models[run_id].status is Status.QUEUED:
            self.scene.make_due(run_id)
            self.models[run_id].due = True
            self.claim(run_id)

    @rule(data=st.data())
    def time_passes(self, data: st.DataObject) -> None:
        run_id = data.draw(st.sampled_from(list(self.models)))
        if self.models[run_id].status is Status.QUEUED:
            self.scene.make_due(run_id)
            self.models[run_id].due = True

    # workers, those that hold a lease and those that only think so

    @precondition(lambda self: self.claims)
    @rule(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        claim = data.draw(st.sampled_from(self.claims))
        model = self.models[claim.run_id]
        start = data.draw(st.sampled_from([0, *sorted(step for step in model.checkpoints)]))
        if model.holds(claim) and claim.attempt in model.begun - {1}:
            start = model.step  # a beginning that is sent again says the same
        started = records.Started(start, 1000, 1, "cpu", (1,), {"torch": "2"})
        first = claim.attempt not in model.begun
        if claim.attempt == 1 and start:
            return
        self.as_holder(claim, ingest.write, ingest.Batch(started=started))
        if model.holds(claim) and first:
            model.begun.add(claim.attempt)
            model.step = start
            model.life = dict(model.checkpoints[start]) if start else {}

    @precondition(lambda self: self.claims)
    @rule(data=st.data(), value=st.sampled_from(VALUES), twice=st.booleans(), keeps=st.booleans())
    def train(self, data: st.DataObject, value: float, twice: bool, keeps: bool) -> None:
        """Three steps and perhaps a checkpoint; a batch may arrive twice. The worker's clock is an hour off."""
        claim = data.draw(st.sampled_from(self.claims))
        model = self.models[claim.run_id]
        if model.holds(claim) and claim.attempt not in model.begun:
            return
        steps = range(model.step + 1, model.step + 4)
        batch = ingest.Batch(
            metrics=[("train_loss", step, value) for step in steps],
            logs=[(steps[0], datetime.now(UTC) + timedelta(hours=data.draw(st.sampled_from([-1, 1]))), "info", "x")],
            checkpoints=[records.Checkpoint(steps[-1], "x.pt", "0" * 64, 1)] if keeps else [],
            step=steps[-1],
        )
        for _ in range(1 + twice):
            self.as_holder(claim, ingest.write, batch)
        if model.holds(claim):
            model.step = steps[-1]
            model.written += 3
            model.life |= dict.fromkeys(steps, (claim.attempt, value))
            if keeps:
                model.checkpoints[model.step] = dict(model.life)

    @precondition(lambda self: self.claims)
    @rule(data=st.data())
    def beat(self, data: st.DataObject) -> None:
        claim = data.draw(st.sampled_from(self.claims))
        model = self.models[claim.run_id]
        beat = self.as_holder(claim, runs.beat, step=None, lease_s=LEASE_S)
        if beat is not None:
            model.expired = False
            assert (beat.cancel, beat.pause) == (model.status is Status.CANCELLING, model.pause)

    @precondition(lambda self: self.claims)
    @rule(data=st.data(), end=st.sampled_from(ENDS))
    def finish(self, data: st.DataObject, end: tuple[Status, FailureClass | None]) -> None:
        claim = data.draw(st.sampled_from(self.claims))
        model, (status, failure_class) = self.models[claim.run_id], end
        divergence = records.Divergence(1, 0, "activation") if status is Status.DIVERGED else None
        ended = self.as_holder(claim, runs.finish, status=status, failure_class=failure_class, divergence=divergence)
        if ended is None:
            return
        if model.status is Status.CANCELLING:
            model.to(Status.CANCELLED)
        elif failure_class is not None:
            model.fail(failure_class)
        else:
            model.to(status)
        assert ended is model.status

    @precondition(lambda self: self.claims)
    @rule(data=st.data())
    def give_back(self, data: st.DataObject) -> None:
        claim = data.draw(st.sampled_from(self.claims))
        model = self.models[claim.run_id]
        if self.as_holder(claim, runs.give_back, "bye") is not None:
            cancelling = model.status is Status.CANCELLING
            model.to(Status.CANCELLED if cancelling else Status.PAUSED if model.pause else Status.QUEUED)

    # leases

    @rule(data=st.data())
    def a_lease_runs_out(self, data: st.DataObject) -> None:
        run_id = data.draw(st.sampled_from(list(self.models)))
        if self.models[run_id].status in LEASED:
            self.scene.expire(run_id)
            self.models[run_id].expired = True

    @rule()
    def reap(self) -> None:
        lost = {run_id for run_id, model in self.models.items() if model.expired}
        assert set(self.act(lambda: runs.reap(self.session))) & set(self.models) == lost
        for run_id in lost:
            model = self.models[run_id]
            if model.status is Status.CANCELLING:
                model.to(Status.CANCELLED)
            else:
                model.fail(FailureClass.WORKER_LOST)

    # people

    def ask(self, data: st.DataObject, request: Callable[..., Any]) -> tuple[Model, bool]:
        run_id = data.draw(st.sampled_from(list(self.models)))
        refused = isinstance(self.act(lambda: request(self.session, run_id), IllegalMove), IllegalMove)
        return self.models[run_id], refused

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        model, refused = self.ask(data, requests.request_cancel)
        assert refused == (model.status in TERMINAL)
        if model.status in WAITING:
            model.to(Status.CANCELLED)
        elif model.status is Status.RUNNING:
            model.to(Status.CANCELLING)

    @rule(data=st.data())
    def pause(self, data: st.DataObject) -> None:
        model, refused = self.ask(data, requests.request_pause)
        assert refused == (model.status in TERMINAL or model.status is Status.CANCELLING)
        if model.status is Status.QUEUED:
            model.to(Status.PAUSED)
        elif model.status is Status.RUNNING:
            model.pause = True

    @rule(data=st.data())
    def resume(self, data: st.DataObject) -> None:
        model, refused = self.ask(data, requests.resume)
        resumable = model.status in (Status.PAUSED, Status.FAILED, Status.CANCELLED)
        assert refused != (resumable or (model.status is Status.RUNNING and model.pause))
        if resumable:
            model.to(Status.QUEUED)
            model.charged = 0
        elif not refused:
            model.pause = False

    # what must hold

    @invariant()
    def the_database_says_what_the_model_says(self) -> None:
        now = self.session.scalar(select(func.clock_timestamp()))
        for run_id, model in self.models.items():
            run = runs.get(self.session, run_id)
            assert (run.status, run.attempts_charged) == (model.status, model.charged)
            assert run.lease_token == (model.holder.token if model.holder else None)
            assert run.pause_requested == model.pause
            open_attempts = self.session.scalars(
                select(AttemptRow.number).where(AttemptRow.run_id == run_id, AttemptRow.outcome.is_(None))
            ).all()
            assert open_attempts == ([model.holder.attempt] if model.holder else []), "one holder at a time"
            if model.holder and not model.expired:
                assert now < run.lease_expires_at <= now + timedelta(seconds=LEASE_S), "the database's clock counts"
        self.session.rollback()

    @invariant()
    def the_series_has_each_step_once_and_nothing_of_a_zombie(self) -> None:
        for run_id, model in self.models.items():
            (series,) = metrics.read(self.session, run_id, ["train_loss"])
            read = list(zip(series.steps, series.attempts, map(bits, series.values), strict=True))
            assert read == [(step, attempt, bits(value)) for step, (attempt, value) in sorted(model.life.items())]
            stored = select(func.count()).select_from(MetricRow).where(MetricRow.run_id == run_id)
            assert self.session.scalar(stored) == model.written
        self.session.rollback()

    def teardown(self) -> None:
        """Every run comes to its end by hints alone: nothing is stuck."""
        for run_id, model in self.models.items():
            if model.status is Status.PAUSED:
                self.act(lambda run_id=run_id: requests.resume(self.session, run_id))
                model.to(Status.QUEUED)
        outbox.mark_published(self.session, [hint.id for hint in outbox.take(self.session)])  # and lost on their way
        for _ in range(2 * BUDGET + 2):
            self.session.execute(text("UPDATE runs SET not_before = clock_timestamp() WHERE status = 'queued'"))
            self.session.execute(
                text("UPDATE runs SET lease_expires_at = now() - interval '1 s' WHERE lease_token IS NOT NULL")
            )
            self.session.commit()
            self.act(lambda: runs.reap(self.session))
            self.broker.clear()
            outbox.sweep(self.session, -1.0)
            self.session.commit()
            self.session.execute(text("UPDATE runs SET not_before = clock_timestamp() WHERE status = 'queued'"))
            self.session.commit()
            for hint in outbox.take(self.session):
                if hint.run_id in self.models and self.scene.status(hint.run_id) is Status.QUEUED:
                    claim = self.scene.claim(hint.run_id)
                    self.scene.finish(claim, Status.SUCCEEDED)
            self.session.commit()
        states = self.session.scalars(select(RunRow.status).where(RunRow.id.in_(list(self.models)))).all()
        assert set(states) <= TERMINAL
        done = select(func.count()).where(AttemptRow.run_id.in_(list(self.models)), AttemptRow.outcome.is_(None))
        assert self.session.scalar(done) == 0
        self.session.rollback()


def test_no_order_of_events_loses_doubles_or_blocks_a_run(scene: Any) -> None:
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        lambda: World(scene),
        settings=settings(
            max_examples=6,
            stateful_step_count=35,
            deadline=None,
            phases=(Phase.explicit, Phase.reuse, Phase.generate),
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )
