"""What is in this repository: every patch is named, carries no context, and fits the installed engine."""

from pathlib import Path

import pytest

from overlays.base import base_tree
from overlays.manifest import BUILT_IN, known, with_required
from overlays.patch import hunks
from overlays.stage import check

FAULTY = Path(__file__).parent / "faulty"
OVERLAYS = known([FAULTY])


def named(overlay):
    """The files of the overlay's folder that its manifest names."""
    return {path for target in overlay.targets for file in target.files for path in (file.patch, file.added) if path}


@pytest.mark.parametrize("overlay", OVERLAYS.values(), ids=OVERLAYS.keys())
def test_every_patch_file_is_named_in_a_manifest(overlay):
    lying = set(overlay.folder.rglob("*.patch")) | set(overlay.folder.glob("*/payload/*.py"))
    assert lying == named(overlay)


@pytest.mark.parametrize("overlay", OVERLAYS.values(), ids=OVERLAYS.keys())
def test_no_patch_carries_context(overlay):
    for target in overlay.targets:
        for file in target.files:
            if file.patch:
                assert hunks(file.patch.read_text(encoding="utf-8"), file.path)


@pytest.mark.parametrize("name", [name for name, overlay in OVERLAYS.items() if overlay.folder.parent == BUILT_IN])
def test_every_overlay_offered_to_users_says_how_to_arm_it_and_roll_it_back(name):
    text = (BUILT_IN / name / "README.md").read_text(encoding="utf-8")
    assert [word for word in ("## Why", "## Arm", "## Roll back", "## Watch") if word not in text] == []


def test_a_payload_is_not_a_package_of_the_repository():
    assert not list(BUILT_IN.rglob("payload/__init__.py"))


@pytest.mark.engine
@pytest.mark.parametrize("name", [name for name in OVERLAYS if name != "drifted"])
def test_every_overlay_fits_the_installed_engine(name, engine_python):
    check(base_tree(engine_python), with_required([name], [FAULTY]))
