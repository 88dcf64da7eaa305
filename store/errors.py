"""What can the store refuse?"""

from uuid import UUID

from store.status import Status


class StoreError(Exception):
    """Any refusal of the store; its text is a message that a person can act on."""


class NotFound(StoreError):
    """There is no such row."""

    def __init__(self, what: str, id: object) -> None:
        self.what = what
        self.id = id
        super().__init__(f"there is no {what} {id}")


class IllegalMove(StoreError):
    """The run's state does not allow what was asked for."""

    def __init__(self, run_id: UUID, status: Status, wanted: str) -> None:
        self.run_id = run_id
        self.status = status
        self.wanted = wanted
        super().__init__(f"run {run_id} is {status}: it cannot be {wanted}")


class LeaseLost(StoreError):
    """The writer does not hold the run's lease (any more): it must stop its trainer and write nothing."""

    def __init__(self, run_id: UUID, attempt: int) -> None:
        self.run_id = run_id
        self.attempt = attempt
        super().__init__(f"attempt {attempt} does not hold the lease of run {run_id}")


class Duplicate(StoreError):
    """What was to be added is taken already."""


class KeyReused(Duplicate):
    """The idempotency key was used before with another body."""

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(f"the idempotency key {key!r} was used before with another body; use a new key")


class KeyInFlight(Duplicate):
    """A request with the same idempotency key is being answered at this moment."""

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(f"a request with the idempotency key {key!r} is being answered; send this one again soon")


class BadCursor(StoreError):
    """The cursor was not made by this service."""

    def __init__(self, cursor: str) -> None:
        self.cursor = cursor
        super().__init__(f"{cursor[:80]!r} is not a cursor of this listing; leave it out to start at the beginning")


class DeviceTaken(Duplicate):
    """Another live worker holds the device."""

    def __init__(self, device_uuid: str, holder: str, host: str, pid: int, beat_age_s: float) -> None:
        self.device_uuid = device_uuid
        self.holder = holder
        self.host = host
        self.pid = pid
        self.beat_age_s = beat_age_s
        super().__init__(
            f"device {device_uuid} is held by worker {holder} (process {pid} on {host}, seen {beat_age_s:.0f} s ago)"
        )
