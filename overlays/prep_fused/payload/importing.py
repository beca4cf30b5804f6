"""Something done as soon as a module is imported, without importing it: an API server never loads a model runner."""

import logging
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

logger = logging.getLogger("vllm.campaign_prep_fused")
Done = Callable[[ModuleType], None]


def after_import(name: str, done: Done) -> None:
    """Call `done` with the module: now if it is there, else once it is. What `done` raises is logged, and kept away."""
    if name in sys.modules:
        _kept_away(done, sys.modules[name])
        return
    sys.meta_path.insert(0, _Watcher(name, done))


def _kept_away(done: Done, module: ModuleType) -> None:
    try:
        done(module)
    except Exception:
        logger.exception("[prep_fused] %s was not mounted: the stock chain runs", module.__name__)


class _Watcher(MetaPathFinder):
    """Finds one module with whatever finder finds it, and is told when it has run. It leaves as it is asked."""

    def __init__(self, name: str, done: Done) -> None:
        self.name, self.done = name, done

    def find_spec(self, fullname: str, _path: Sequence[str] | None = None, _target: Any = None) -> ModuleSpec | None:
        """The spec of the others, its loader told to speak."""
        if fullname != self.name:
            return None
        sys.meta_path.remove(self)  # from here on it is found as if nobody had asked
        spec = find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Told(spec.loader, self.done)
        return spec


class _Told(Loader):
    """A loader that does what another one does, and then tells."""

    def __init__(self, own: Any, done: Done) -> None:
        self.own, self.done = own, done

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """As the other one."""
        return self.own.create_module(spec)  # type: ignore[no-any-return]

    def exec_module(self, module: ModuleType) -> None:
        """Run it under its own loader's name, then tell."""
        if module.__spec__ is not None:
            module.__spec__.loader = self.own
        module.__loader__ = self.own
        self.own.exec_module(module)
        _kept_away(self.done, module)
