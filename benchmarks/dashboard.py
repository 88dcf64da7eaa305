"""How long does a reader of the dashboard wait? Starts benchmarks/dashboard_timings.py: this name would hide a package.

python benchmarks/dashboard.py [--json] [--quick] [--keep DIR] [--only PAGE ..] [--rounds N]
"""

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])
    runpy.run_module("benchmarks.dashboard_timings", run_name="__main__")
