"""Where is the release of Long Range Arena? One archive of four tasks' files; nobody has published its hash."""

from rotrnn_core.tasks.download import Download

COLLECTION = "lra"
ARCHIVE = Download("https://storage.googleapis.com/long-range-arena/lra_release.gz", 7_700_000_000)
