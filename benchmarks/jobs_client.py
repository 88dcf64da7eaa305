"""How fast does one API process take submissions? A client that costs it as little of the machine as it can.

    python benchmarks/jobs_client.py 8000 16 1000 < body.json

Ready-made requests over plain sockets, each connection one at a time; prints the seconds on the wall's clock and those
of this process. Told apart from benchmarks/jobs.py so that its processor time is not the server's.
"""

import selectors
import socket
import sys
import time
from uuid import uuid4

HEADERS = (
    "POST /v1/runs HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer t\r\nContent-Type: application/json\r\n"
    "Content-Length: %d\r\nIdempotency-Key: "
)


class Connection:
    """One connection, and what has come of the answer that it waits for."""

    def __init__(self, port: int, body: bytes) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._body = body
        self._begin = (HEADERS % len(body)).encode()
        self._come = b""

    def fileno(self) -> int:
        """For a selector."""
        return self._socket.fileno()

    def send(self) -> None:
        """Submit a run under a key of its own."""
        self._come = b""
        self._socket.sendall(self._begin + uuid4().hex.encode() + b"\r\n\r\n" + self._body)

    def answered(self) -> bool:
        """Read what is there; whether the answer is whole.

        Raises:
            RuntimeError: The run was not accepted.
        """
        self._come += self._socket.recv(65536)
        head, end, rest = self._come.partition(b"\r\n\r\n")
        if not end:
            return False
        if not head.startswith(b"HTTP/1.1 202"):
            raise RuntimeError(self._come.decode())
        length = head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]
        return len(rest) >= int(length)


def submit(port: int, connections: int, number: int, body: bytes) -> None:
    """So many submissions in all, as many at once as there are connections."""
    selector = selectors.DefaultSelector()
    for _ in range(connections):
        connection = Connection(port, body)
        selector.register(connection, selectors.EVENT_READ)
        connection.send()
    sent, answered = connections, 0
    while answered < number:
        for key, _ in selector.select():
            connection = key.fileobj
            assert isinstance(connection, Connection)
            if not connection.answered():
                continue
            answered += 1
            if sent < number:
                connection.send()
                sent += 1


def main() -> None:
    """Submit and tell."""
    port, connections, number = map(int, sys.argv[1:])
    body = sys.stdin.buffer.read()
    began, busy = time.perf_counter(), time.process_time()
    submit(port, connections, number, body)
    sys.stdout.write(f"{time.perf_counter() - began!r} {time.process_time() - busy!r}\n")


if __name__ == "__main__":
    main()
