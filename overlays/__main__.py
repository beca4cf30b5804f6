"""python -m overlays: what overlays there are, and whether they fit the installed engine."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from overlays.base import BaseTree, base_tree
from overlays.errors import DriftError, OverlayError
from overlays.manifest import known, load, with_required
from overlays.pin import pin
from overlays.stage import check
from overlays.values import Overlay

ENGINE = Path(__file__).parents[1] / ".venv-engine" / "bin" / "python"
HELP = """
An overlay is a patch over the engine's files (or a plugin hook into them), pinned by hash, off by default.

  python -m overlays list                    one line an overlay: name, knobs, engines, why
  python -m overlays show async_dflash       all that its manifest says, and what its witness asks of the engine
  python -m overlays verify                  does every overlay fit the engine in .venv-engine? one line each
  python -m overlays verify --python /opt/engine/bin/python --overlay-path ./mine
  python -m overlays pin my_overlay --overlay-path ./mine     write its hashes into its manifest (review them first)

Exit codes: 0 all well; 2 configuration (unknown name, bad manifest, no target for this engine, two overlays on one
file); 6 drift (the engine's file, or the patched one, is not the pinned one). For a new
overlay, copy overlays/async_dflash; see overlays/README.md."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; the exit code."""
    asked = _parser().parse_args(arguments)
    try:
        return _run(asked)
    except OverlayError as error:
        print(f"overlays: {error}", file=sys.stderr)
        return exit_code(error)


def exit_code(error: OverlayError) -> int:
    """6 for drift, 2 for the rest."""
    return 6 if isinstance(error, DriftError) else 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m overlays", description=HELP, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="list|show|verify|pin")
    for verb, takes_name in (("list", False), ("show", True), ("verify", False), ("pin", True)):
        sub = verbs.add_parser(verb)
        if takes_name:
            sub.add_argument("name")
        sub.add_argument("--overlay-path", action="append", default=[], type=Path, metavar="DIR", help="more overlays")
        if verb in ("verify", "pin"):
            sub.add_argument("--python", default=ENGINE, type=Path, metavar="P", help="the engine's interpreter")
    return parser


def _run(asked: argparse.Namespace) -> int:
    if asked.verb == "list":
        print("\n".join(format_line(overlay) for overlay in known(asked.overlay_path).values()))
    elif asked.verb == "show":
        print(format_whole(load(asked.name, asked.overlay_path)))
    elif asked.verb == "pin":
        required = with_required(load(asked.name, asked.overlay_path).requires, asked.overlay_path)
        print("\n".join(pin(base_tree(asked.python), load(asked.name, asked.overlay_path), required)))
    else:
        return _verify(base_tree(asked.python), asked.overlay_path)
    return 0


def _verify(base: BaseTree, search: Sequence[Path]) -> int:
    print(f"engine {base.version} ({base.build}) at {base.package}")
    codes = [_verify_one(base, name, search) for name in known(search)]
    return next((code for code in (2, 6) if code in codes), 0)


def _verify_one(base: BaseTree, name: str, search: Sequence[Path]) -> int:
    try:
        check(base, with_required([name], search))
    except OverlayError as error:
        print(f"{name:24} {'DRIFT' if isinstance(error, DriftError) else 'WRONG'}  {error}")
        return exit_code(error)
    print(f"{name:24} fits")
    return 0


def format_line(overlay: Overlay) -> str:
    """Name, knobs, engines and the first sentence of why."""
    knobs = ", ".join(f"{knob.name}={'|'.join(knob.values)}" for knob in overlay.knobs) or "no knob"
    engines = ", ".join(f"{target.version} ({'/'.join(target.builds)})" for target in overlay.targets)
    return f"{overlay.name:24} {knobs:24} {engines:24} {overlay.why.split('. ')[0].rstrip('.')}."


def format_whole(overlay: Overlay) -> str:
    """Everything the manifest says, in the order in which one asks."""
    lines = [f"{overlay.name}: {overlay.why}", f"owner     {overlay.owner}", f"folder    {overlay.folder}"]
    upstream = overlay.upstream
    lines.append(f"upstream  {upstream.link} ({upstream.status}); drop when {upstream.drop_when}")
    lines.append(f"requires  {', '.join(overlay.requires) or 'nothing'}")
    lines.append(f"async     {'safe' if overlay.async_safe else 'NOT safe'}: {overlay.async_reason}")
    for knob in overlay.knobs:
        lines.append(f"knob      {knob.name} ({knob.variable}) = {' | '.join(knob.values)}, default {knob.default}")
        for value, witness in knob.witness.items():
            lines.append(f"  at {value}    the engine must show {witness.resolved}, {witness.behaved}")
    if overlay.plugin:
        lines.append(f"plugin    {overlay.plugin.object}, wraps {', '.join(overlay.plugin.wraps)}")
    for target in overlay.targets:
        lines.append(f"target    vLLM {target.version} ({', '.join(target.builds)})")
        lines += [
            f"  {file.path}  {_how(file.patch, file.added)}  -> {file.postimage_sha256[:12]}" for file in target.files
        ]
    return "\n".join(lines)


def _how(patch: Path | None, added: Path | None) -> str:
    if added:
        return f"added from {added.name}"
    return f"patched by {patch.name}" if patch else "watched"


if __name__ == "__main__":
    sys.exit(main())
