"""Who stops the Postgres that several test processes share? This one: when the last of them is gone, however it went.

    python tests/postgres_ward.py FOLDER

Every user holds a shared lock on FOLDER/users; the kernel drops it when a user ends. The ward waits for the lock alone.
"""

import fcntl
import json
import shutil
import signal
import sys
from pathlib import Path

from deploy.local.servers import EmbeddedPostgres


def main(folder: Path) -> None:
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    with (folder / "users").open("w") as users, EmbeddedPostgres(folder / "postgres", durable=False) as server:
        address = folder / "address.new"
        address.write_text(json.dumps({"port": server.port}))
        address.rename(folder / "address")
        fcntl.flock(users, fcntl.LOCK_EX)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
