"""How fast are numbers kept and read? Starts benchmarks/store_numbers.py: this name would hide the package `store`.

python benchmarks/store.py [--json] [--quick] [--only NAME ..] [--without-mlflow] [--mlflow DIR]
"""

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])
    runpy.run_module("benchmarks.store_numbers", run_name="__main__")
