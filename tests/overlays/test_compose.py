"""Which overlays go together, and that a hash that misses stops everything."""

from hashlib import sha256

import pytest

from overlays.compose import compose, order
from overlays.errors import DriftError, OverlayError
from overlays.manifest import load, parse

FIRST = "# fast path\nasync_scheduling = True\nname = 'cpu'\n"
SECOND = "# fast path\nasync_scheduling = True\nname = 'cpu2'\n"
CPU = "vllm/platforms/cpu.py"


def found(workshop, *names):
    return [parse(workshop.folder / name) for name in names]


def test_a_patch_that_fits_gives_its_postimage(workshop, small_engine):
    workshop.patching("first", FIRST)
    assert compose(small_engine, found(workshop, "first")).files == {CPU: FIRST.encode()}


@pytest.mark.case("E3")
def test_two_overlays_on_one_file_are_an_error_that_lists_both(workshop, small_engine):
    first, second = workshop.patching("first", FIRST), workshop.patching("second", SECOND)
    with pytest.raises(
        OverlayError, match=f"first and second both touch {CPU}, and neither requires the other"
    ) as told:
        compose(small_engine, found(workshop, "first", "second"))
    assert f"({first}/one.patch; {second}/one.patch); drop one" in str(told.value)


@pytest.mark.case("E3")
def test_a_text_that_is_not_where_the_patch_says_is_refused_though_the_hash_fits(workshop, small_engine):
    """(a) of the case: there is no search for an anchor that could find nothing and go on."""
    folder = workshop.patching("first", FIRST)
    patch = folder / "one.patch"
    patch.write_text(patch.read_text().replace("-async_scheduling = False", "-async_scheduling = None"))
    with pytest.raises(DriftError, match=r"line 2 is 'async_scheduling = False\\n', but the patch removes"):
        compose(small_engine, found(workshop, "first"))


def test_every_pair_that_does_not_go_together_is_named(workshop, small_engine):
    for name in ("a", "b", "c"):
        workshop.patching(name, FIRST)
    with pytest.raises(OverlayError) as told:
        compose(small_engine, found(workshop, "a", "b", "c"))
    assert [pair in str(told.value) for pair in ("a and b both", "a and c both", "b and c both")] == [True] * 3


def test_an_overlay_may_stand_on_the_one_that_it_requires(workshop, small_engine):
    workshop.patching("zfirst", FIRST)
    workshop.patching("second", SECOND, before=FIRST, requires='["zfirst"]')
    both = compose(small_engine, found(workshop, "second", "zfirst"))
    assert ([overlay.name for overlay in both.overlays], both.files[CPU]) == (["zfirst", "second"], SECOND.encode())


def test_what_is_required_must_be_there(workshop, small_engine):
    workshop.patching("second", SECOND, requires='["first"]')
    with pytest.raises(OverlayError, match=r"second requires first, which is not among \['second'\]; add it"):
        compose(small_engine, found(workshop, "second"))


def test_a_circle_of_requirements_is_refused(workshop):
    workshop.patching("first", FIRST, requires='["second"]')
    workshop.patching("second", SECOND, requires='["first"]')
    with pytest.raises(OverlayError, match="require each other in a circle"):
        order(found(workshop, "first", "second"))


def test_an_overlay_named_twice_is_refused(workshop):
    workshop.patching("first", FIRST)
    with pytest.raises(OverlayError, match="named twice"):
        order(found(workshop, "first", "first"))


def test_the_order_does_not_depend_on_how_it_was_asked(workshop):
    for name in ("a", "b", "c"):
        workshop.patching(name, FIRST)
    forwards, backwards = order(found(workshop, "a", "b", "c")), order(found(workshop, "c", "b", "a"))
    assert forwards == backwards


def test_one_knob_in_two_overlays_is_refused(small_engine, faulty):
    both = [load("async_dflash", [faulty]), load("noop_async", [faulty])]
    with pytest.raises(OverlayError, match="async_dflash and noop_async both declare"):
        compose(small_engine, both)


def test_a_changed_engine_is_refused_with_found_and_wanted(workshop, small_engine):
    workshop.patching("first", FIRST)
    (small_engine.root / CPU).write_text("another = 1\n")
    with pytest.raises(DriftError, match=rf"first: {CPU} is [0-9a-f]{{64}}, but the manifest pins [0-9a-f]{{64}}"):
        compose(small_engine, found(workshop, "first"))


@pytest.mark.case("E2")
@pytest.mark.parametrize(
    "path", ["vllm/platforms/cpuu.py", "vllm/platform/cpu.py", "vllm/cpu.py"], ids=["file", "folder", "no folder"]
)
def test_a_misspelt_destination_is_refused_and_the_right_one_named(workshop, small_engine, path):
    workshop.patching("first", FIRST, path=path)
    with pytest.raises(DriftError, match=r"no such file .*did you mean vllm/platforms/cpu\.py"):
        compose(small_engine, found(workshop, "first"))


LANDED = {
    "the patched file": (FIRST, "already in this engine: the file is the patched one"),
    "its line among others": (
        "import os\n" + FIRST,
        "perhaps already in this engine: all lines that the patch adds stand in the file",
    ),
}


@pytest.mark.parametrize(("text", "told"), LANDED.values(), ids=LANDED.keys())
def test_an_engine_that_has_the_change_by_itself_is_told_from_one_that_merely_differs(
    workshop, small_engine, text, told
):
    workshop.patching("first", FIRST)
    (small_engine.root / CPU).write_text(text)
    with pytest.raises(DriftError, match=rf"\({told}\)"):
        compose(small_engine, found(workshop, "first"))


def test_a_declared_part_is_told_by_its_name(workshop, small_engine):
    folder = workshop.patching("first", FIRST)
    (folder / "manifest.toml").write_text(
        (folder / "manifest.toml").read_text()
        + f'[[landed]]\nwhat = "the switch"\npath = "{CPU}"\ntext = "decide_it_here()"\n'
    )
    (small_engine.root / CPU).write_text("async_scheduling = decide_it_here()\n")
    with pytest.raises(DriftError, match=r"\(already in this engine: the switch\)"):
        compose(small_engine, found(workshop, "first"))


@pytest.mark.parametrize(
    "text",
    ["another = 1\n", "async_scheduling = False\nasync_scheduling = True\n"],
    ids=["nothing of it", "what is to go is there too"],
)
def test_another_engine_is_not_said_to_have_the_change(workshop, small_engine, text):
    workshop.patching("first", FIRST)
    (small_engine.root / CPU).write_text(text)
    with pytest.raises(DriftError) as told:
        compose(small_engine, found(workshop, "first"))
    assert "already" not in str(told.value)


def test_a_file_that_is_no_text_takes_no_patch(workshop, small_engine):
    (small_engine.package / "table.bin").write_bytes(b"\xff\xfe\n")
    folder = workshop.patching("first", "b\n", before="a\n", path="vllm/table.bin")
    manifest = folder / "manifest.toml"
    pinned = manifest.read_text().split('preimage_sha256 = "')[1][:64]
    manifest.write_text(manifest.read_text().replace(pinned, sha256(b"\xff\xfe\n").hexdigest()))
    with pytest.raises(OverlayError, match=r"vllm/table\.bin is no text"):
        compose(small_engine, found(workshop, "first"))


def test_another_result_than_the_pinned_one_is_refused(workshop, small_engine):
    folder = workshop.patching("first", FIRST)
    manifest = folder / "manifest.toml"
    text = manifest.read_text()
    pinned = text.split('postimage_sha256 = "')[1][:64]
    manifest.write_text(text.replace(pinned, "f" * 64))
    with pytest.raises(DriftError, match=f"first makes {CPU} {pinned}, but its manifest pins f{{64}}; review it"):
        compose(small_engine, found(workshop, "first"))


ADDED = (
    '[[target]]\nversion = "0.29.0"\nbuilds = ["cpu"]\n'
    '[[target.file]]\npath = "{path}"\nadded = "new.py"\npostimage_sha256 = "{hash}"\n'
)


def test_an_added_file_is_pinned_by_its_postimage(workshop, small_engine):
    workshop.write("adds", "new.py", "x = 1\n")
    workshop.overlay("adds", ADDED.format(path="vllm/new.py", hash="0" * 64))
    with pytest.raises(DriftError, match=r"adds makes vllm/new\.py [0-9a-f]{64}, but its manifest pins 0{64}"):
        compose(small_engine, found(workshop, "adds"))


def test_an_added_file_that_is_there_already_is_refused(workshop, small_engine):
    workshop.write("adds", "new.py", "x = 1\n")
    workshop.overlay("adds", ADDED.format(path=CPU, hash="0" * 64))
    with pytest.raises(DriftError, match=f"adds adds {CPU}, but the engine has that file already"):
        compose(small_engine, found(workshop, "adds"))


def test_a_file_that_a_plugin_wraps_may_not_be_patched_by_a_stranger(workshop, small_engine):
    hook(workshop)
    workshop.patching("first", FIRST)
    with pytest.raises(OverlayError, match=f"first and hook both touch {CPU}"):
        compose(small_engine, found(workshop, "hook", "first"))


def test_a_plugin_is_refused_when_what_it_wraps_has_drifted(workshop, small_engine):
    hook(workshop)
    (small_engine.root / CPU).write_text("another = 1\n")
    with pytest.raises(DriftError, match=f"hook: {CPU} is"):
        compose(small_engine, found(workshop, "hook"))


def hook(workshop):
    """A plugin overlay that wraps the small engine's cpu.py."""
    pin = sha256(b"# fast path\nasync_scheduling = False\nname = 'cpu'\n").hexdigest()
    return workshop.plugin(
        "hook",
        {"wrap.py": "def register():\n    pass\n"},
        '[[target]]\nversion = "0.29.0"\nbuilds = ["cpu"]\n[[target.file]]\n'
        f'path = "{CPU}"\npreimage_sha256 = "{pin}"\npostimage_sha256 = "{pin}"\n',
        wraps=f'["{CPU}"]',
    )


@pytest.mark.parametrize("change", ["a text", "a file more", "a file less"])
def test_a_plugin_whose_own_files_are_not_the_pinned_ones_is_refused(workshop, small_engine, change):
    """The witness itself is such a plugin: nobody may edit what it reports without a review."""
    folder = hook(workshop)
    if change == "a file less":
        (folder / "pay/wrap.py").unlink()
    else:
        (folder / "pay" / ("wrap.py" if change == "a text" else "more.py")).write_text("x = 1\n")
    with pytest.raises(DriftError, match=r"hook's payload .*pay is [0-9a-f]{64}, but its manifest pins .*pin hook"):
        compose(small_engine, found(workshop, "hook"))


def test_a_link_in_a_plugins_payload_is_refused(workshop, small_engine, tmp_path):
    """No hash here would speak for what it points to, and a linked folder would not be staged at all."""
    folder = hook(workshop)
    (folder / "pay" / "more").symlink_to(tmp_path)
    with pytest.raises(OverlayError, match="pay/more is a link"):
        compose(small_engine, found(workshop, "hook"))


@pytest.mark.parametrize(
    ("second", "told"),
    [
        ({"package": "other_pkg"}, "both declare the entry point hook"),
        ({"entry_point": '"other"'}, "both declare the package hook_pkg"),
    ],
    ids=["entry point", "package"],
)
def test_two_plugins_with_one_name_are_refused(workshop, small_engine, second, told):
    """Of two entry points of one name the engine loads one, and says nothing of the other."""
    hook(workshop)
    workshop.plugin("other_hook", {"wrap.py": ""}, **second)
    with pytest.raises(OverlayError, match=f"hook and other_hook {told}"):
        compose(small_engine, found(workshop, "hook", "other_hook"))


TABLE = "vllm/tuned/table.json"
NO_JSON = {
    "a key twice": ('{"stock": 1,\n "stock": 2}\n', "the key 'stock' is there twice"),
    "a key twice further in": ('{"a": [{"b": 1, "b": 1}]}\n', "the key 'b' is there twice"),
    "a comma too many": ('{"stock": 1,}\n', "no JSON"),
}


@pytest.mark.parametrize(("text", "told"), NO_JSON.values(), ids=NO_JSON.keys())
def test_a_table_that_is_no_json_or_says_a_thing_twice_is_refused(workshop, small_engine, text, told):
    """It is merged by lines; a reader would keep one of the two values and say nothing."""
    workshop.patching("tuned", text, before='{"stock": 1}\n', path=TABLE)
    with pytest.raises(OverlayError, match=told) as caught:
        compose(small_engine, found(workshop, "tuned"))
    assert not isinstance(caught.value, DriftError)


def test_a_file_whose_lines_end_as_on_windows_can_be_patched(workshop, small_engine):
    """0.29.0 has one: vllm/config/fault_tolerance.py."""
    before, after = "a = 1\r\nb = 2\r\n", "a = 1\r\nb = 9\r\n"
    (small_engine.root / CPU).write_bytes(before.encode())
    workshop.patching("first", after, before=before)
    assert compose(small_engine, found(workshop, "first")).files[CPU] == after.encode()


def test_a_patch_that_is_no_text_is_a_configuration_error(workshop, small_engine):
    folder = workshop.patching("first", FIRST)
    (folder / "one.patch").write_bytes(b"\xff\xfe")
    with pytest.raises(OverlayError, match=r"one\.patch is no UTF-8"):
        compose(small_engine, found(workshop, "first"))
