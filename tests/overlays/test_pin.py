"""Writing hashes into a manifest."""

import pytest

from overlays.compose import compose
from overlays.errors import DriftError, OverlayError
from overlays.manifest import parse
from overlays.pin import pin
from tests.overlays.conftest import payload_digest

FIRST = "# fast path\nasync_scheduling = True\nname = 'cpu'\n"
SECOND = FIRST.replace("'cpu'", "'cpu2'")
ADDED = '[[target.file]]\npath = "vllm/new.py"\nadded = "new.py"\npostimage_sha256 = "{hash}"\n'


def unpinned(folder, hashes=2):
    """Replace the hashes of a manifest by zeros."""
    file = folder / "manifest.toml"
    text = file.read_text()
    for part in text.split('_sha256 = "')[1 : 1 + hashes]:
        text = text.replace(part[:64], "0" * 64)
    file.write_text(text)
    return folder


def test_a_pinned_overlay_fits(workshop, small_engine):
    folder = unpinned(workshop.patching("first", FIRST))
    with pytest.raises(DriftError):
        compose(small_engine, [parse(folder)])
    assert [line.split()[0] for line in pin(small_engine, parse(folder), ())] == ["vllm/platforms/cpu.py"]
    assert compose(small_engine, [parse(folder)]).files["vllm/platforms/cpu.py"] == FIRST.encode()


def test_each_file_gets_its_own_hash(workshop, small_engine):
    folder = unpinned(workshop.patching("first", FIRST))
    workshop.write("first", "new.py", "x = 1\n")
    with (folder / "manifest.toml").open("a") as manifest:
        manifest.write(ADDED.format(hash="0" * 64))
    pin(small_engine, parse(folder), ())
    assert set(compose(small_engine, [parse(folder)]).files) == {"vllm/platforms/cpu.py", "vllm/new.py"}


@pytest.mark.parametrize(
    "header",
    ["[[target.file]]  # a new one", "[[ target.file ]]", "\t[[target . file]]"],
    ids=["remark", "blanks", "tab"],
)
def test_a_block_whose_header_is_written_in_another_way_keeps_its_hash(workshop, small_engine, header):
    folder = unpinned(workshop.patching("first", FIRST))
    workshop.write("first", "new.py", "x = 1\n")
    with (folder / "manifest.toml").open("a") as manifest:
        manifest.write(ADDED.format(hash="0" * 64).replace("[[target.file]]", header))
    pin(small_engine, parse(folder), ())
    assert set(compose(small_engine, [parse(folder)]).files) == {"vllm/platforms/cpu.py", "vllm/new.py"}


def test_an_overlay_is_pinned_upon_what_it_requires(workshop, small_engine):
    first = parse(workshop.patching("first", FIRST))
    folder = unpinned(workshop.patching("second", SECOND, before=FIRST, requires='["first"]'))
    pin(small_engine, parse(folder), (first,))
    assert compose(small_engine, [first, parse(folder)]).files["vllm/platforms/cpu.py"] == SECOND.encode()


def test_a_plugins_payload_is_pinned_too(workshop, small_engine):
    folder = workshop.plugin("hook", {"wrap.py": "x = 1\n"})
    manifest = (folder / "manifest.toml").read_text()
    (folder / "pay" / "wrap.py").write_text("x = 2\n")
    with pytest.raises(DriftError, match="pin hook"):
        compose(small_engine, [parse(folder)])
    assert [line.split()[0] for line in pin(small_engine, parse(folder), ())] == ["pay/"]
    assert set(compose(small_engine, [parse(folder)]).files) == {"hook_pkg/__init__.py", "hook_pkg/wrap.py"}
    written = (folder / "manifest.toml").read_text()
    assert [old for old, new in zip(manifest.splitlines(), written.splitlines(), strict=True) if old != new] == [
        f'payload_sha256 = "{payload_digest("hook_pkg", {"wrap.py": "x = 1" + chr(10)})}"'
    ]


def test_a_table_that_says_a_thing_twice_is_not_pinned(workshop, small_engine):
    path = "vllm/tuned/table.json"
    folder = workshop.patching("tuned", '{"stock": 1,\n "stock": 2}\n', before='{"stock": 1}\n', path=path)
    before = (folder / "manifest.toml").read_text()
    with pytest.raises(OverlayError, match="the key 'stock' is there twice"):
        pin(small_engine, parse(folder), ())
    assert (folder / "manifest.toml").read_text() == before


def test_a_patch_that_does_not_apply_is_not_pinned(workshop, small_engine):
    folder = workshop.patching("first", FIRST)
    before = (folder / "manifest.toml").read_text()
    (small_engine.root / "vllm/platforms/cpu.py").write_text("other = 1\n")
    with pytest.raises(DriftError, match="but the patch removes"):
        pin(small_engine, parse(folder), ())
    assert (folder / "manifest.toml").read_text() == before
