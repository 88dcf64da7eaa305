"""What does one worker own from start to end? A device, a presence, a lifeline to its child, and the child's work."""

import os
import platform
import signal
import time
from types import FrameType
from uuid import UUID

import structlog
from celery import Celery
from celery.worker.consumer import Consumer
from sqlalchemy import Engine
from sqlalchemy.orm import Session, sessionmaker

from rotrnn_core.tasks.registry import at_hand
from store import runs, workers
from store.engine import session_factory
from store.errors import DeviceTaken
from store.leases import Claim
from worker import artifacts, devices
from worker.courier import RETRY_AFTER_S
from worker.database import worker_engine
from worker.delivery import first_line, is_away
from worker.devices import DeviceUnusable
from worker.footprint import memory_of
from worker.kinship import die_with
from worker.lifeline import Lifeline
from worker.presence import Presence
from worker.settings import WorkerSettings
from worker.supervisor import Supervisor


class Station:
    """One worker, made in its main process before the fork.

    Raises:
        DeviceUnusable: The device is not there, or another worker holds it, on this machine or elsewhere.
        StoreUnknown: Nothing here speaks to the store of the artifacts.
    """

    def __init__(self, settings: WorkerSettings) -> None:
        self._settings = settings
        self._pid = os.getpid()
        self._log = structlog.get_logger()
        self._lifeline = Lifeline.make()
        self._told_to_stop = False
        self._presence: Presence | None = None
        artifacts.check_reach(settings.artifacts)
        self._take_device()

    def _take_device(self) -> None:
        """The first candidate that neither this machine nor the store knows to be held."""
        refusals = []
        for device in devices.candidates(self._settings.device, self._settings.host):
            self._device = device
            self._name = self._settings.worker_name or f"{self._settings.host}:{self._device.name}"
            self._environment = {
                "python": platform.python_version(),
                "device": self._device.title,
                "data_dir": str(self._settings.data_dir.absolute()),
            }
            try:
                self._lock = devices.hold(self._device, self._settings.database_url.get_secret_value())
            except DeviceUnusable as error:
                refusals.append(str(error))
                continue
            try:
                self._register()
            except DeviceTaken as error:
                refusals.append(str(error))
                os.close(self._lock)
                continue
            return
        raise DeviceUnusable("; ".join(refusals))

    def _register(self) -> None:
        """Take the device in the store; while the store is away, the first beat does it."""
        engine = self._engine()
        try:
            with session_factory(engine).begin() as session:
                self._beat(session, None)
        except Exception as error:
            if not is_away(error):
                raise
            self._log.warning("the database is away; the worker starts nevertheless", error=first_line(error))
        finally:
            engine.dispose()

    def serve(self, app: Celery, consumer: Consumer) -> None:
        """Main process: begin to beat, and to take the runs whose data are here."""
        sessions = session_factory(self._engine())
        self._presence = Presence(self._settings, app, consumer, sessions, self._name, self._beat)
        self._presence.start()
        self._log.info("worker ready", worker=self._name, device=self._device.name, device_uuid=self._device.uuid)

    def shut_down(self) -> None:
        """Main process: tell the child to bring its run to an end. Called in a signal handler."""
        self._lifeline.cut()
        if self._presence is not None:
            self._presence.retiring = True

    def close(self) -> None:
        """Main process: beat no more, and free the device in the store."""
        if self._presence is None:
            return
        self._presence.stop()
        engine = self._engine()
        try:
            with session_factory(engine).begin() as session:
                workers.forget(session, self._name, self._pid)
        except Exception as error:
            if not is_away(error):
                raise
            self._log.warning("the database is away; the device is free after one lease")
        finally:
            engine.dispose()

    def enter_child(self) -> None:
        """Pool child: die with the main process, watch the lifeline, and take SIGTERM as the lifeline's cut."""
        die_with(self._pid)
        self._lifeline.watch()
        self._sessions = session_factory(self._engine())

    def train(self, run_id: str) -> None:
        """Pool child: claim the run that a message names, and see its attempt through."""
        self._told_to_stop = False  # a SIGTERM to the child alone ends one attempt; the child stays
        before = signal.signal(signal.SIGTERM, self._on_sigterm)
        try:
            claim = self._claim(UUID(run_id), self._sessions)
            if claim is not None:
                Supervisor(self._settings, self._sessions, claim, self._device, self._is_stopping).run()
        finally:
            signal.signal(signal.SIGTERM, before)

    def _claim(self, run_id: UUID, sessions: sessionmaker[Session]) -> Claim | None:
        """The run, if it is to be had and the device is ours; waits a lease for a database that is away."""
        log = self._log.bind(run_id=str(run_id))
        patience_ends = time.monotonic() + self._settings.lease_s
        while not self._is_stopping():
            try:
                with sessions.begin() as session:
                    claim = runs.claim(
                        session,
                        run_id,
                        worker_id=self._name,
                        lease_s=self._settings.lease_s,
                        host=self._settings.host,
                        device=self._device.name,
                        data=at_hand(self._settings.data_dir),
                    )
                    if claim is not None:
                        self._beat(session, run_id)
            except DeviceTaken as error:
                log.error("no claim: another worker holds this device", detail=str(error))
                return None
            except Exception as error:
                if not is_away(error) or time.monotonic() > patience_ends:
                    raise
                log.warning("no claim yet: the database is away", error=first_line(error))
                time.sleep(RETRY_AFTER_S)
            else:
                log.info("claimed" if claim else "stale message dropped")
                return claim
        return None

    def _beat(self, session: Session, run_id: UUID | None) -> None:
        workers.beat(
            session,
            self._name,
            host=self._settings.host,
            device=self._device.name,
            device_uuid=self._device.uuid,
            pid=self._pid,
            environment=self._environment,
            run_id=run_id,
            data=at_hand(self._settings.data_dir),
            memory=memory_of(self._pid),
            stale_s=self._settings.lease_s,
        )

    def _is_stopping(self) -> bool:
        return self._told_to_stop or self._lifeline.is_cut

    def _on_sigterm(self, _number: int, _frame: FrameType | None) -> None:
        self._told_to_stop = True

    def _engine(self) -> Engine:
        return worker_engine(self._settings, self._name)
