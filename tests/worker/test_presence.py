"""Does a worker take from the queues of the data that it has, and from no others?"""

from dataclasses import dataclass, field
from typing import Any

from kombu import Queue

from worker.presence import take_from


@dataclass
class Reader:
    """What Celery's consumer has of queues."""

    names: list[str] = field(default_factory=lambda: ["rotbench"])
    connected: bool = True

    @property
    def task_consumer(self) -> Any:
        return self if self.connected else None

    @property
    def queues(self) -> list[Queue]:
        return [Queue(name) for name in self.names]

    def add_task_queue(self, name: str) -> None:
        self.names.append(name)

    def cancel_task_queue(self, name: str) -> None:
        self.names.remove(name)


def test_queues_come_and_go_with_the_data() -> None:
    reader = Reader()
    for wanted in ({"rotbench", "rotbench.data.text"}, {"rotbench", "rotbench.data.image"}, {"rotbench"}):
        for _ in range(2):
            take_from(reader, wanted)
            assert set(reader.names) == wanted
            assert len(reader.names) == len(wanted)


def test_a_worker_that_is_connecting_is_told_later() -> None:
    reader = Reader(connected=False)
    take_from(reader, {"rotbench", "rotbench.data.text"})
    assert reader.names == ["rotbench"]
