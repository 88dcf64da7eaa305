"""How many processes has the kernel killed for want of memory?"""

from pathlib import Path

VMSTAT = Path("/proc/vmstat")


def kills(vmstat: Path = VMSTAT) -> int:
    """The machine's count since its start, control groups included; 0 where the kernel does not say."""
    try:
        fields = dict(line.split() for line in vmstat.read_text().splitlines())
    except (OSError, ValueError):
        return 0
    return int(fields.get("oom_kill", 0))
