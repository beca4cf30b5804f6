import subprocess
import sys

import pytest

HEAVY = ["scipy.stats", "scipy.optimize", "scipy.integrate", "matplotlib", "pandas", "torch", "mlflow", "campaign"]


@pytest.mark.parametrize("room", ["power", "claims", "sentence", "plot", "proportions"])
def test_statistics_import_nothing_that_takes_long(room: str) -> None:
    code = f"import sys, verdict.{room}; print([name for name in {HEAVY} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
