"""The variables that an arm's engine is given, by rank: engine.env, engine.pass_env, the profile."""

from dataclasses import dataclass

from campaign.asked import variables
from campaign.asked.assigned import Assigned, place
from campaign.asked.origins import Kind, Setting, choose, layers
from campaign.asked.pinned import Pinned
from campaign.config import Campaign, Level, Written
from campaign.errors import ConfigError
from overlays.values import Overlay

PASS_ENV = "engine.pass_env"


def settings(
    campaign: Campaign, taken: dict[str, str], profile: Assigned, readers: "Readers"
) -> tuple[list[Setting], list[str]]:
    """engine.env, engine.pass_env and the profile's variables, by their rank; and notes of what is left out.

    null is unset. `taken` are the variables of knobs, with the knob.
    """
    engine = campaign.engine
    passed = layers(campaign, PASS_ENV, "the shell's", Level.default, f"engine {engine.name}")[-1]
    found, notes = [], []
    for name in dict.fromkeys([*engine.env, *engine.pass_env, *profile.variables]):
        candidates = [*filter(None, [profile.variables.get(name)])]
        if name in engine.env:
            where = f"engine.env.{name}"
            _check_variable(where, name, taken)
            value = variables.text(where, engine.env[name])
            candidates += layers(campaign, where, value, Level.default, f"engine {engine.name}")
        if name in engine.pass_env:
            _check_variable(PASS_ENV, name, taken)
            _refuse_both(name, candidates, passed)
            candidates.append(passed)
        chosen = choose(candidates)
        kind: Kind = "passed" if chosen.winner.key == PASS_ENV else "env"
        left_out = readers.left_out(chosen.winner, name)
        if left_out:
            notes.append(left_out)
        else:
            found.append(Setting(kind, name, chosen.winner.value, chosen.winner.origin, chosen.over))
    return found, notes


def _check_variable(where: str, name: str, taken: dict[str, str]) -> None:
    if name in taken:
        raise ConfigError(
            f"{where}: knob {taken[name]} sets this variable ({name}); use arms.<arm>.knobs.{taken[name]}, "
            f"or engine.knobs.{taken[name]} for both arms"
        )
    variables.refuse(where, name, secret_too=where != PASS_ENV)


def _refuse_both(name: str, candidates: list[Written], passed: Written) -> None:
    if any(entry.level is passed.level for entry in candidates):
        raise ConfigError(f"variable {name} is set by engine.env and by {PASS_ENV}; take it out of one")


@dataclass(frozen=True)
class Readers:
    """Who reads a VLLM_ variable: the engine, an overlay of this arm, or an overlay that it does not stage."""

    arm: str
    lists: Pinned
    staged: tuple[Overlay, ...]
    known: dict[str, Overlay]

    def left_out(self, entry: Written, name: str) -> str:
        """Why the arm is not given this variable; empty where it is. Raises ConfigError for a name nobody reads."""
        staged = {variable for overlay in self.staged for variable in overlay.variables}
        if not name.startswith(variables.ENGINE_PREFIX) or name in self.lists.variables or name in staged:
            return ""
        owners = [overlay.name for overlay in self.known.values() if name in overlay.variables]
        where = place(entry) if entry.level is Level.profile else entry.key
        if not owners:
            raise variables.unknown(where, name, self.lists.version, {*self.lists.variables, *staged})
        return f"{where}: {name} is not given to arm {self.arm}, which does not stage overlay {' or '.join(owners)}"
