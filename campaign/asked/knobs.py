"""The knobs that an arm has: those of its staged overlays, and those without an overlay (knobs.toml)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from campaign.asked.origins import quoting
from campaign.config import Written
from campaign.errors import ConfigError
from overlays.errors import OverlayError
from overlays.knobs import knobs_of
from overlays.manifest import known
from overlays.values import Knob, Overlay, Served, Witness

FILE = Path(__file__).parents[1] / "knobs.toml"
Owned = tuple[Knob, str]  # a knob, and in words who declares it


@dataclass(frozen=True)
class KnobValue:
    """A knob with the value that an arm gives it, who said so, and what must then be seen."""

    knob: Knob
    value: str
    origin: str  # "experiment exp8", "default of overlay async_dflash"
    over: tuple[Written, ...] = ()
    method: str | None = None  # how tokens are drafted; some values mean different arguments by it

    @property
    def served(self) -> Served | None:
        """The serve arguments that this value stands for; None where it gives none to this drafting method."""
        served = self.knob.served.get(self.value)
        return served if served is not None and served.for_method(self.method) else None

    @property
    def given(self) -> str | None:
        """What the knob's variable is set to; None where it has none or is left unset."""
        return None if self.knob.variable is None or self.value == self.knob.not_given else self.value

    @property
    def asks(self) -> bool:
        """Whether anything is asked of the engine at all; a value that asks for nothing has nothing to show."""
        return self.given is not None or self.served is not None

    @property
    def witness(self) -> Witness | None:
        """What the engine must show for this value; None where it asks for nothing."""
        return self.knob.witness.get(self.value) if self.asks else None

    @property
    def reason(self) -> str:
        """Why this value means these arguments (`auto: dflash reads ...`); empty where there is nothing to say."""
        rule = self.knob.served.get(self.value)
        if rule is None:
            return ""
        if self.served is None:
            return f"{self.value}: method {self.method} leaves it to the engine"
        return f"{self.value}: {self.method} {rule.reason}" if rule.methods else f"{self.value}: {rule.reason}"


@cache
def without_overlay() -> tuple[Knob, ...]:
    """The knobs of knobs.toml."""
    return knobs_of(FILE)


def declared(overlays: Iterable[Overlay]) -> dict[str, Owned]:
    """Knob name -> knob and who declares it. Two owners of a knob or of a variable are a ConfigError."""
    found: dict[str, Owned] = {}
    variables: dict[str, str] = {}
    for knob, owner in _all(overlays):
        other = found[knob.name][1] if knob.name in found else variables.get(knob.variable or "")
        if other:
            raise ConfigError(f"{other} and {owner} both declare knob {knob.name} ({knob.variable or 'no variable'})")
        found[knob.name] = (knob, owner)
        if knob.variable:
            variables[knob.variable] = owner
    return found


def _all(overlays: Iterable[Overlay]) -> list[Owned]:
    staged = [(knob, f"overlay {overlay.name}") for overlay in overlays for knob in overlay.knobs]
    return [*staged, *((knob, FILE.name) for knob in without_overlay())]


def read(where: str, knob: Knob, value: Any) -> str:
    """A value of the knob's closed set, as text. Raises ConfigError."""
    wanted = ", ".join(f'"{v}"' for v in knob.values)
    if isinstance(value, bool):
        raise ConfigError(
            f"{where}: found the YAML truth value {str(value).lower()}, wanted text, one of {wanted}; "
            f"{quoting(where, knob.values[-1])}"
        )
    if str(value) not in knob.values or not isinstance(value, str | int | float):
        raise ConfigError(f"{where}: found {str(value)!r}, wanted one of {wanted}")
    return str(value)


def serves(knobs: Mapping[str, Owned]) -> dict[str, str]:
    """Serve argument -> the knob that sets it, so that nobody else does."""
    return {
        argument: name
        for name, (knob, _) in knobs.items()
        for served in knob.served.values()
        for argument in served.arguments
    }


def known_overlays(search: Iterable[str]) -> dict[str, Overlay]:
    """Every overlay that can be found, staged or not. Raises ConfigError."""
    try:
        return known([Path(path) for path in search])
    except OverlayError as error:
        raise ConfigError(str(error)) from error
