"""What is checked before the first boot: an engine costs minutes, these cost seconds."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from campaign.engine.port import listener
from campaign.errors import ConfigError, DriftError, HostUnfitError, InvalidError
from campaign.planning.plan import Plan
from overlays import errors as overlay_errors
from overlays.base import BaseTree, base_tree
from overlays.compose import survey
from overlays.rows import expect_fit

GB = 1e9


def preflight(plan: Plan) -> BaseTree:
    """The engine's own package tree, once every arm's overlays fit it and the machine can take a boot.

    Raises ConfigError (no such engine, wrong version, missing model), DriftError (a preimage), HostUnfitError (disk)
    and InvalidError (somebody else listens on the port).
    """
    base = fitting_base(plan)
    _check_models(plan)
    _check_disk(plan)
    for place in (0, 1) if plan.schedule.paired else (0,):  # a duet's second engine is on the next port
        _check_port(plan.campaign.host.port + place)
    return base


def fitting_base(plan: Plan) -> BaseTree:
    """The installed engine, with every file of both arms' overlays verified by hash.

    Raises one error that names all files that do not fit, of both arms: DriftError, or ConfigError.
    """
    engine = plan.campaign.engine
    if not Path(engine.python).exists():
        raise ConfigError(f"engine.python: no interpreter at {engine.python}; `make setup` makes it")
    with overlays_told():
        base = base_tree(Path(engine.python))
        _check_version(plan, base)
        rows = [row for arm in plan.arms.values() for row in survey(base, arm.overlays).rows]
        expect_fit(tuple(dict.fromkeys(rows)))  # what both arms stage is told once
    return base


@contextmanager
def overlays_told() -> Iterator[None]:
    """The overlays' own errors as this package's: DriftError for a hash, ConfigError for the rest."""
    try:
        yield
    except overlay_errors.DriftError as error:
        raise DriftError(str(error)) from error
    except overlay_errors.OverlayError as error:
        raise ConfigError(str(error)) from error


def _check_version(plan: Plan, base: BaseTree) -> None:
    engine = plan.campaign.engine
    if (base.version, base.build) != (engine.version, engine.build):
        raise ConfigError(
            f"engine {engine.name} is configured as vLLM {engine.version} ({engine.build}), but {engine.python} has "
            f"{base.version} ({base.build}); choose another engine= or install the right one"
        )


def _check_models(plan: Plan) -> None:
    model = plan.campaign.model
    for key, path in (("target", model.target), ("drafter", model.drafter)):
        if path is not None and path.startswith("/") and not (Path(path) / "config.json").is_file():
            raise ConfigError(f"model.{key}: no config.json in {path}; `make testbed` rebuilds the toy pair")


def _check_disk(plan: Plan) -> None:
    host = plan.campaign.host
    runs = Path(host.runs_dir)
    try:
        runs.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"host.runs_dir: {runs} cannot be made: {error}") from error
    free_gb = shutil.disk_usage(runs).free / GB
    if free_gb < host.min_free_gb:
        raise HostUnfitError(f"{free_gb:.1f} GB free at {runs}, wanted {host.min_free_gb:g} (host.min_free_gb)")


def _check_port(port: int) -> None:
    found = listener(port)
    if found is not None and found.run:
        raise InvalidError(
            f"port {port} is held: {found}; nothing was started. Wait until that run or probe has ended, end what a "
            f"dead one left with `python -m campaign resume {found.run}`, or choose another host.port"
        )
    if found is not None:
        raise InvalidError(
            f"foreign server on port {port}: {found}; nothing was started. Stop it, or choose another host.port"
        )
