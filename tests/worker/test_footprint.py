"""Is a worker's memory that of all its processes, and unknown where the system does not say?"""

import os
import subprocess
import sys
from pathlib import Path

from worker.footprint import memory_of


def test_memory_is_that_of_a_process_and_its_descendants(tmp_path: Path) -> None:
    alone = memory_of(os.getpid())
    assert alone is not None
    assert 0 < alone.resident_mib < alone.host_total_mib
    assert 0 < alone.host_available_mib <= alone.host_total_mib
    script = "held = bytearray(b'1') * (200 << 20); print('held', flush=True); input()"
    child = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        both = memory_of(os.getpid())
        child.kill()
    assert both is not None
    assert both.resident_mib >= alone.resident_mib + 150
    assert memory_of(os.getpid(), tmp_path / "proc") is None
