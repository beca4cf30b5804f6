"""Unpack a wheel of the engine without its compiled modules (unpack_wheel.py WHEEL FOLDER, for `make engine-sources`).

The folder is made aside and renamed, so that one that is there is whole.
"""

import shutil
import sys
import tempfile
from pathlib import Path
from zipfile import ZipFile

wheel, folder = map(Path, sys.argv[1:])
folder.parent.mkdir(parents=True, exist_ok=True)
aside = Path(tempfile.mkdtemp(prefix=".unpacking-", dir=folder.parent))
try:
    with ZipFile(wheel) as files:
        files.extractall(aside, [name for name in files.namelist() if ".so" not in Path(name).name])
    shutil.rmtree(folder, ignore_errors=True)
    aside.rename(folder)
finally:
    shutil.rmtree(aside, ignore_errors=True)
