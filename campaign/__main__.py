"""The light door: reads the command line, composes the configuration, and imports a room only once it is needed."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from campaign import manual
from campaign.engine import signals
from campaign.errors import Boundary, ConfigError, ExitCode

if TYPE_CHECKING:
    from campaign.config import Campaign


def main(arguments: list[str]) -> int:
    """Run one verb and return its exit code; every error that is expected ends in one sentence."""
    with Boundary() as end, signals.interruptible():  # every `with` stops what it started, whatever tells us to end
        end.code = _dispatch(arguments)
    return int(end.code)


def _dispatch(arguments: list[str]) -> ExitCode:
    if (words := manual.asked_for(arguments)) is not None:
        sys.stdout.write(words)
        return ExitCode.PASS if arguments else ExitCode.CONFIG
    verb, rest = (arguments[0], arguments[1:]) if manual.is_verb(arguments[0]) else ("run", arguments)
    if verb == "import":
        from campaign import import_request

        request = import_request.parse(rest)
        from campaign import verbs

        return verbs.bring_in(request)
    if verb in manual.ON_A_RUN:
        from campaign import door

        reference = door.run_reference(verb, rest)
        if reference.files:
            return _look_into(reference.files, reference.as_json)
        from campaign import verbs

        return verbs.on_a_run(verb, reference)
    return _with_config(verb, rest)


def _look_into(files: tuple[Path, ...], as_json: bool) -> ExitCode:
    """`inspect FILE...`: no run is needed for it, so nothing of a run is imported."""
    from campaign import console, inspection

    found = inspection.look_into_all(files)
    console.show(inspection.document(found) if as_json else [line for one in found for line in one.lines])
    return inspection.code(found)


def _with_config(verb: str, overrides: list[str]) -> ExitCode:
    from campaign import door, phases

    composed = door.compose(overrides)
    if composed is None:  # hydra answered by itself (--cfg, --info)
        return ExitCode.PASS
    campaigns = phases.of(composed, overrides)
    if verb == "boot":
        return _one(verb, campaigns[0])
    code = ExitCode.PASS
    for at, campaign in enumerate(campaigns):
        code = _one(verb, campaign)
        if code is not ExitCode.PASS:
            _say_not_begun(campaigns[at + 1 :], campaign, code)
            break
    return code


def _one(verb: str, campaign: "Campaign") -> ExitCode:
    """One run, or one probe."""
    from campaign import console
    from campaign.planning.plan import make, new_run_id

    plan = make(campaign, new_run_id("-".join(filter(None, (campaign.name, campaign.phase)))))
    if verb == "boot" and campaign.arm not in plan.arms:
        raise ConfigError(f"arm={campaign.arm}: experiment {campaign.name} has {', '.join(plan.arms)}")
    console.show(console.format_strays(plan, os.environ))
    if campaign.dry_run:
        console.show([*console.format_plan(plan), "dry run: nothing was started"])
        return ExitCode.PASS
    from campaign import verbs

    return verbs.probe(plan) if verb == "boot" else verbs.run(plan)


def _say_not_begun(left: "Sequence[Campaign]", ended: "Campaign", code: ExitCode) -> None:
    from campaign import console

    if left:
        names = ", ".join(f"phase {campaign.phase}" for campaign in left)
        console.show(f"{names} not begun: phase {ended.phase} ended with {code.name} ({int(code)})")


if __name__ == "__main__":
    # numpy's BLAS would start threads that a dry run never uses; the engine has an environment of its own
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.exit(main(sys.argv[1:]))
