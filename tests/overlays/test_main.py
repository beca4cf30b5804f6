"""python -m overlays: what it prints and the code it ends with."""

import pytest

from overlays.__main__ import main
from overlays.manifest import BUILT_IN
from tests.fakes.overlay import CORE, PYTHON, Change, write_overlay

OFFERED = sorted(path.parent.name for path in BUILT_IN.glob("*/manifest.toml"))


def test_list_has_one_line_an_overlay(capsys):
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == OFFERED
    assert "async_dflash=0|1" in lines[0]


def test_show_tells_all_that_one_asks(capsys):
    assert main(["show", "async_dflash"]) == 0
    out = capsys.readouterr().out
    for part in (
        "VLLM_GLM53_ASYNC_DFLASH",
        "drop when",
        "safe: ",
        "vllm/platforms/cpu.py  patched by cpu.patch",
        "'min': 2.0",
    ):
        assert part in out


def test_an_unknown_name_is_a_sentence_and_two(capsys):
    assert main(["show", "nothing_like_it"]) == 2
    assert capsys.readouterr().err == (
        f"overlays: no overlay is called 'nothing_like_it'; known: {', '.join(OFFERED)}\n"
    )


def test_a_missing_engine_is_two(capsys, tmp_path):
    assert main(["verify", "--python", str(tmp_path / "python")]) == 2
    assert "cannot be asked" in capsys.readouterr().err


def test_a_folder_that_cannot_be_made_is_two_and_no_traceback(capsys, workshop):
    write_overlay(workshop.folder, "first", Change(CORE, "STEP_FACTOR = 1.0\n", "STEP_FACTOR = 2.0\n"))
    words = ["verify", "first", "--import", "--python", str(PYTHON), "--overlay-path", str(workshop.folder)]
    assert main([*words, "--stages", "/proc/nowhere"]) == 2
    assert "overlays: [Errno" in capsys.readouterr().err


def test_help_teaches_by_examples_and_names_the_exit_codes(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    out = capsys.readouterr().out
    assert "python -m overlays verify" in out
    assert "Exit codes" in out


@pytest.mark.engine
def test_verify_says_of_each_overlay_that_it_fits(capsys, engine_python):
    assert main(["verify", "--python", str(engine_python)]) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()[1:]] == [[name, "fits"] for name in OFFERED]


@pytest.mark.engine
def test_a_set_is_verified_as_one_and_its_modules_import_in_the_engine(capsys, engine_python, stage_cache):
    words = ["verify", "engine_report", "async_dflash", "--import", "--stages", str(stage_cache)]
    assert main([*words, "--python", str(engine_python)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "async_dflash             patched  vllm/config/vllm.py" in lines[2] + lines[1] + lines[3]
    assert lines[-1].endswith("of 2 overlays fit and import")


def test_a_rebase_to_an_engine_that_is_not_here_says_how_to_get_it(capsys):
    assert main(["rebase", "async_dflash", "--from", "0.1.0", "--to", "0.31.0"]) == 2
    assert "the sources of vLLM 0.1.0 are not here" in capsys.readouterr().err


@pytest.mark.engine
def test_verify_names_the_drifted_one_and_ends_with_six(capsys, engine_python, faulty):
    assert main(["verify", "--python", str(engine_python), "--overlay-path", str(faulty)]) == 6
    states = dict(line.split()[:2] for line in capsys.readouterr().out.splitlines()[1:])
    assert {name for name, state in states.items() if state != "fits"} == {"drifted"}
    assert states["drifted"] == "DRIFT"


@pytest.mark.engine
def test_an_overlay_for_another_engine_is_two(capsys, engine_python, workshop):
    folder = workshop.patching("first", "x = 1\n")
    manifest = folder / "manifest.toml"
    manifest.write_text(manifest.read_text().replace("0.29.0", "0.30.0"))
    assert main(["verify", "--python", str(engine_python), "--overlay-path", str(workshop.folder)]) == 2
    assert "first has no target for vLLM 0.29.0 (cpu); it has: 0.30.0 (cpu)" in capsys.readouterr().out
