"""How fast are numbers kept and read? Starts benchmarks/numbers.py, which this file's name would hide `store` from.

python benchmarks/store.py [--json] [--quick] [--without-mlflow] [--mlflow DIR]
"""

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])
    runpy.run_module("benchmarks.numbers", run_name="__main__")
