"""What becomes of an attempt whose supervisor died? Its spool is delivered and its end stored, while its lease holds.

Without this the run would wait for the end of its lease, and what was not yet delivered would be trained again.
"""

from pathlib import Path

import structlog
from sqlalchemy.orm import Session, sessionmaker

from rotrnn_core.records import Divergence, Finished
from store.errors import LeaseLost
from store.status import FailureClass
from worker.delivery import Fence, conclude, deliver, is_away
from worker.messages import Failure, HandedBack, from_line
from worker.spool import Spool, SpoolHeld
from worker.verdict import Abandon, Ending, Intent, judge


def recover(sessions: sessionmaker[Session], spool_dir: Path, artifacts: str) -> None:
    """Settle every spool in the folder that no living process holds.

    Raises:
        Exception: The store is away (see `is_away`); what was not settled waits.
    """
    for path in sorted(spool_dir.glob("*.jsonl")):
        try:
            spool = Spool.open(path)
            fence = Fence.of(spool)
        except (SpoolHeld, FileNotFoundError):
            continue
        except ValueError as error:
            structlog.get_logger().warning("a spool without a header says nothing", spool=str(path), error=str(error))
            path.unlink(missing_ok=True)
            continue
        _settle(sessions, fence, spool, artifacts)


def _settle(sessions: sessionmaker[Session], fence: Fence, spool: Spool, artifacts: str) -> None:
    log = structlog.get_logger().bind(run_id=str(fence.run_id), attempt=fence.attempt)
    ending = Ending(None, "", 1, failure=Failure(FailureClass.WORKER_LOST, "the worker died without a word"))
    try:
        while entries := deliver(sessions, fence, spool, artifacts):
            for entry in entries:
                ending = _after(ending, entry.line)
        verdict = judge(ending)
        assert not isinstance(verdict, Abandon)
        status = conclude(sessions, fence, verdict)
    except LeaseLost as error:
        log.info("a spool came too late", reason=str(error))
    except Exception as error:
        if is_away(error):
            spool.close()
            raise
        log.exception("the store refused a spool")
    else:
        log.info("a dead attempt was settled", status=status.value)
    spool.remove()


def _after(ending: Ending, line: str) -> Ending:
    message = from_line(line)
    match message:
        case Finished():
            return Ending(None, "", 0, finished=True)
        case Divergence():
            return Ending(None, "", 0, divergence=message)
        case HandedBack():
            return Ending(Intent.SHUTDOWN, message.reason, 0)
    return ending
