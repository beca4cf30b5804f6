"""The door: what a manifest may say, and the sentence for everything it may not."""

import shutil
from pathlib import Path

import pytest

from overlays.errors import OverlayError
from overlays.manifest import BUILT_IN, known, load, with_required

HASH = "0" * 64
PINS = f'preimage_sha256 = "{HASH}"\npostimage_sha256 = "{HASH}"\n'
FILE = f'[[target.file]]\npath = "vllm/a.py"\npatch = "one.patch"\n{PINS}'
OTHER_PINS = f'preimage_sha256 = "{HASH}"\npostimage_sha256 = "{"1" * 64}"\n'
TARGET = f'[[target]]\nversion = "0.29.0"\nbuilds = ["cpu"]\n{FILE}'
KNOB = (
    '[[knob]]\nname = "fast"\nvariable = "VLLM_FAST"\nvalues = ["0", "1"]\ndefault = "0"\n'
    "[knob.witness.0]\nresolved = { fast = false }\n"
    '[knob.witness.1]\nresolved = { fast = true, mode = "x", n = 2 }\nbehaved = { steps = { min = 2, max = 3.5 } }\n'
)


def test_a_manifest_becomes_values(workshop):
    workshop.write("fast", "one.patch", "")
    workshop.overlay("fast", KNOB + TARGET, requires='["engine_report"]')
    overlay = load("fast", [workshop.folder])
    knob = overlay.knobs[0]
    assert (overlay.name, overlay.requires, overlay.async_safe, overlay.variables) == (
        "fast",
        ("engine_report",),
        True,
        ("VLLM_FAST",),
    )
    assert (knob.name, knob.values, knob.default) == ("fast", ("0", "1"), "0")
    assert knob.witness["1"].resolved == {"fast": True, "mode": "x", "n": 2}
    assert knob.witness["1"].behaved == {"steps": {"min": 2.0, "max": 3.5}}
    assert overlay.target("0.29.0", "cpu").files[0].patch == workshop.folder / "fast" / "one.patch"


WRONG = {
    "unknown key": ({}, TARGET + '[extra]\nx = "y"\n', "unknown key 'extra'; known here: async_reason"),
    "unknown key in a file": ({}, TARGET + 'fuzz = "2"\n', "unknown key 'fuzz'"),
    "unknown key in a knob": ({}, KNOB.replace("default =", 'hint = "x"\ndefault =') + TARGET, "unknown key 'hint'"),
    "unknown bound": ({}, KNOB.replace("min = 2", "least = 2") + TARGET, "unknown key 'least'"),
    "no why": ({"why": '" "'}, TARGET, "why is ' '"),
    "why is a number": ({"why": "3"}, TARGET, r"why is 3, but must be a text \(in quotes\)"),
    "async_safe is a text": ({"async_safe": '"yes"'}, TARGET, "async_safe is 'yes', but must be true or false"),
    "requires is a text": ({"requires": '"a"'}, TARGET, "requires is 'a', but must be an array"),
    "requires a path": ({"requires": '["../a"]'}, TARGET, "requires is '../a', but must match"),
    "requires itself": ({"requires": '["fast"]'}, TARGET, "fast requires itself"),
    "values are booleans": ({}, KNOB.replace('["0", "1"]', "[false, true]") + TARGET, "values is False, but"),
    "values twice": ({}, KNOB.replace('["0", "1"]', '["0", "0"]') + TARGET, "values names something twice"),
    "default not a value": ({}, KNOB.replace('default = "0"', 'default = "2"') + TARGET, "default is '2', but must"),
    "witness for a part": ({}, KNOB.replace('["0", "1"]', '["0", "1", "2"]') + TARGET, "witness is given for"),
    "witness of a list": ({}, KNOB.replace("fast = false", "fast = [1]") + TARGET, "resolved.fast is"),
    "bound is a text": ({}, KNOB.replace("min = 2", 'min = "2"') + TARGET, "min is '2', but must be a number"),
    "variable in small letters": ({}, KNOB.replace("VLLM_FAST", "vllm_fast") + TARGET, "variable is 'vllm_fast'"),
    "variable twice": ({"variables": '["VLLM_FAST"]'}, KNOB + TARGET, "a variable is declared twice"),
    "no target": ({}, "", "target is missing"),
    "target twice": ({}, TARGET + TARGET, "one target for each engine, once"),
    "file twice": ({}, TARGET + FILE, "a file is named twice"),
    "path climbs out": ({}, TARGET.replace("vllm/a.py", "vllm/../a.py"), "path is 'vllm/../a.py'"),
    "path is absolute": ({}, TARGET.replace("vllm/a.py", "/etc/passwd"), "path is '/etc/passwd'"),
    "path of another package": ({}, TARGET.replace("vllm/a.py", "torch/a.py"), "path is 'torch/a.py'"),
    "patch climbs out": ({}, TARGET.replace("one.patch", "../one.patch"), r"patch is '\.\./one.patch'"),
    "short hash": ({}, TARGET.replace(HASH, "0" * 63), "preimage_sha256 is '0{63}'"),
    "capital hash": ({}, TARGET.replace(HASH, "A" * 64), "preimage_sha256 is 'A{64}'"),
    "no preimage": ({}, TARGET.replace(f'preimage_sha256 = "{HASH}"\n', ""), "preimage_sha256 belongs to every file"),
    "patched and added": ({}, TARGET + 'added = "one.patch"\n', "has both patch and added"),
    "added with a preimage": ({}, TARGET.replace("patch =", "added ="), "preimage_sha256 belongs to every file"),
    "watched with two hashes": (
        {}, TARGET.replace('patch = "one.patch"\n', "").replace(PINS, OTHER_PINS),
        "is only watched, so both hashes must be the same"),
    "not TOML": ({"why": "yes no"}, TARGET, "is not TOML"),
    "plugin without its pin": (
        {}, '[plugin]\nentry_point = "p"\nobject = "p.q:r"\npayload = "pay"\n'
        f'payload_sha256 = "{HASH}"\nwraps = ["vllm/b.py"]\n' + TARGET,
        "the plugin wraps vllm/b.py, which target 0.29.0 does not pin"),
    "plugin's object is a path": (
        {}, '[plugin]\nentry_point = "p"\nobject = "/p"\npayload = "pay"\nwraps = []\n' + TARGET, "object is '/p'"),
    "plugin whose payload nothing pins": (
        {}, '[plugin]\nentry_point = "p"\nobject = "p.q:r"\npayload = "pay"\nwraps = []\n' + TARGET,
        "payload_sha256 is missing"),
    "plugin without a payload": (
        {}, '[plugin]\nentry_point = "p"\nobject = "p.q:r"\npayload = "none"\nwraps = []\n' + TARGET, "not a folder"),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "body", "sentence"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_manifest_is_refused_with_a_sentence(workshop, changes, body, sentence):
    workshop.write("fast", "one.patch", "")
    workshop.write("fast", "pay/q.py", "")
    workshop.overlay("fast", body, **changes)
    with pytest.raises(OverlayError, match=sentence):
        load("fast", [workshop.folder])


def test_a_patch_file_that_is_not_there_is_refused_and_nothing_is_made_of_it(workshop):
    workshop.overlay("fast", TARGET)
    with pytest.raises(OverlayError, match=r"one\.patch is not there as a regular file"):
        load("fast", [workshop.folder])
    assert not (workshop.folder / "fast" / "one.patch").exists()


def test_a_folder_in_the_place_of_a_patch_is_refused(workshop):
    workshop.overlay("fast", TARGET)
    (workshop.folder / "fast" / "one.patch").mkdir()
    with pytest.raises(OverlayError, match="not there as a regular file"):
        load("fast", [workshop.folder])


def test_an_unknown_name_is_answered_with_the_nearest(workshop):
    with pytest.raises(OverlayError, match="no overlay is called 'async_dflahs'; did you mean 'async_dflash'"):
        load("async_dflahs", [workshop.folder])


def test_a_name_is_never_a_path():
    with pytest.raises(OverlayError, match=r"no overlay is called '\.\./overlays/async_dflash'"):
        load("../overlays/async_dflash")


def test_one_name_in_two_folders_is_refused(workshop, tmp_path):
    workshop.patching("fast", "x = 1\n")
    shutil.copytree(workshop.folder, tmp_path / "second")
    with pytest.raises(OverlayError, match="two overlays are called fast"):
        known([workshop.folder, tmp_path / "second"])


def test_the_same_folder_named_twice_is_one_folder(workshop):
    workshop.patching("fast", "x = 1\n")
    assert "fast" in known([workshop.folder, workshop.folder])


def test_a_search_path_that_is_not_a_folder_is_refused(tmp_path):
    with pytest.raises(OverlayError, match=r"nowhere is not a folder"):
        known([tmp_path / "nowhere"])


def test_an_overlay_folder_with_a_bad_name_is_refused(workshop):
    workshop.patching("Fast-1", "x = 1\n")
    with pytest.raises(OverlayError, match="name is 'Fast-1', but must match"):
        known([workshop.folder])


def test_a_target_for_another_engine_lists_what_there_is():
    with pytest.raises(
        OverlayError, match=r"async_dflash has no target for vLLM 0\.30\.0 \(cpu\); it has: 0\.29\.0 \(cpu, cuda\)"
    ):
        load("async_dflash").target("0.30.0", "cpu")


def test_what_is_required_comes_along_once(faulty: Path):
    names = [overlay.name for overlay in with_required(["flag_only", "slow_step"], [faulty])]
    assert sorted(names) == ["async_dflash", "engine_report", "flag_only", "slow_step"]


def test_the_planted_faults_are_not_offered_to_users(faulty: Path):
    assert set(known([])) == {path.parent.name for path in BUILT_IN.glob("*/manifest.toml")}
    assert len(known([faulty])) > len(known([]))


@pytest.mark.case("E2")
def test_a_patch_whose_row_is_only_a_comment_is_refused(workshop):
    """It would lie in the overlay, be read by people, and never reach the engine."""
    workshop.write("fast", "0.29.0/envs.patch", "")
    commented = "".join(f"# {line}\n" for line in FILE.replace("one.patch", "0.29.0/envs.patch").splitlines())
    workshop.overlay("fast", '[[target]]\nversion = "0.29.0"\nbuilds = ["cpu"]\nfile = []\n' + commented)
    with pytest.raises(
        OverlayError, match=r"0\.29\.0/envs\.patch lies in the overlay, but no \[\[target\.file\]\] names"
    ):
        load("fast", [workshop.folder])


@pytest.mark.case("E4")
@pytest.mark.parametrize("key", ["patch", "added"])
def test_a_source_that_is_not_there_is_refused_with_the_nearest_one_and_nothing_is_made(workshop, key):
    workshop.write("fast", "envs.patch", "")
    pins = PINS if key == "patch" else f'postimage_sha256 = "{HASH}"\n'
    workshop.overlay(
        "fast",
        '[[target]]\nversion = "0.29.0"\nbuilds = ["cpu"]\n[[target.file]]\n'
        f'path = "vllm/a.py"\n{key} = "env.patch"\n{pins}',
    )
    before = sorted(workshop.folder.rglob("*"))
    with pytest.raises(OverlayError, match=r"env\.patch is not there as a regular file; did you mean envs\.patch\?"):
        load("fast", [workshop.folder])
    assert sorted(workshop.folder.rglob("*")) == before


@pytest.mark.case("E4")
def test_a_folder_in_a_sources_place_is_refused(workshop):
    """What a bind mount makes of a source that is missing."""
    (workshop.folder / "fast" / "one.patch").mkdir(parents=True)
    workshop.overlay("fast", TARGET)
    with pytest.raises(OverlayError, match=r"one\.patch is not there as a regular file"):
        load("fast", [workshop.folder])


def test_a_landed_part_must_look_into_a_file_of_a_target(workshop):
    workshop.write("fast", "one.patch", "")
    workshop.overlay("fast", TARGET + '[[landed]]\nwhat = "it"\npath = "vllm/b.py"\ntext = "x"\n')
    with pytest.raises(OverlayError, match=r"landed 'it' looks into vllm/b\.py, which no target names"):
        load("fast", [workshop.folder])
