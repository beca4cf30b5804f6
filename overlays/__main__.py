"""python -m overlays: what overlays there are, and whether they fit the installed engine."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from overlays import smoke
from overlays.base import BaseTree, base_tree
from overlays.compose import survey
from overlays.ending import ending_cleanly
from overlays.errors import DriftError, OverlayError
from overlays.manifest import known, load, with_required
from overlays.pin import pin
from overlays.rebase import rebase
from overlays.review import PAGE, format_lines, leave
from overlays.rows import Row, expect_fit
from overlays.sources import ENGINE, ROOT, engine_of
from overlays.stage import stage
from overlays.values import Overlay

HELP = """
An overlay is a patch over the engine's files (or a plugin hook into them), pinned by hash, off by default.

  python -m overlays list                    one line an overlay: name, knobs, engines, why
  python -m overlays show async_dflash       all that its manifest says, and what its witness asks of the engine
  python -m overlays verify                  does every overlay fit the engine in .venv-engine? one line each
  python -m overlays verify engine_report async_dflash        as one set: one line for each of its files
  python -m overlays verify async_dflash --import             and do its modules import there? (stages it first)
  python -m overlays verify --python /opt/engine/bin/python --overlay-path ./mine
  python -m overlays pin my_overlay --overlay-path ./mine     write its hashes into its manifest (review them first)
  python -m overlays rebase async_dflash --from 0.29.0 --to 0.31.0    carry it over; the result is left for review

Exit codes: 0 all well; 2 configuration (unknown name, bad manifest, no target for this engine, two overlays on one
file); 6 drift (the engine's file, or the patched one, is not the pinned one; an overlaid module does not import; a
hunk no longer applies, or is to look at); 130 interrupted. For a new overlay, copy overlays/async_dflash; see
overlays/README.md."""
STAGES = ROOT / "runs" / "cache" / "stages"  # where the runner keeps them too


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; the exit code."""
    asked = _parser().parse_args(arguments)
    try:
        with ending_cleanly():
            return _run(asked)
    except OverlayError as error:
        print(f"overlays: {error}", file=sys.stderr)
        return exit_code(error)
    except OSError as error:
        print(f"overlays: {error}; see that the file or folder is there and may be read and written", file=sys.stderr)
        return 2
    except KeyboardInterrupt as request:
        told = request.args[0] if request.args else "Ctrl-C"
        print(f"overlays: interrupted ({told}); what was started is ended, nothing is left half made", file=sys.stderr)
        return 130


def exit_code(error: OverlayError) -> int:
    """6 for drift, 2 for the rest."""
    return 6 if isinstance(error, DriftError) else 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m overlays", description=HELP, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="list|show|verify|pin|rebase")
    made = {verb: verbs.add_parser(verb) for verb in ("list", "show", "verify", "pin", "rebase")}
    for verb, sub in made.items():
        sub.add_argument("--overlay-path", action="append", default=[], type=Path, metavar="DIR", help="more overlays")
        if verb in ("show", "pin", "rebase"):
            sub.add_argument("name")
        if verb in ("verify", "pin"):
            sub.add_argument("--python", default=ENGINE, type=Path, metavar="P", help="the engine's interpreter")
    verify, carry = made["verify"], made["rebase"]
    verify.add_argument("names", nargs="*", metavar="NAME", help="as one set; none: every overlay by itself")
    verify.add_argument("--import", dest="imports", action="store_true", help="try the imports in a stage too")
    verify.add_argument("--stages", default=STAGES, type=Path, metavar="DIR", help="where stages are kept")
    for option, what in (("--from", "fits now"), ("--to", "is to fit")):
        carry.add_argument(
            option, dest=option.strip("-") + "_engine", required=True, metavar="ENGINE",
            help=f"the engine that it {what}: a version, an interpreter, or an unpacked wheel",
        )  # fmt: skip
    carry.add_argument("--out", type=Path, metavar="DIR", help="default build/rebase/NAME-VERSION")
    return parser


def _run(asked: argparse.Namespace) -> int:
    if asked.verb == "list":
        print("\n".join(format_line(overlay) for overlay in known(asked.overlay_path).values()))
    elif asked.verb == "show":
        print(format_whole(load(asked.name, asked.overlay_path)))
    elif asked.verb == "pin":
        required = with_required(load(asked.name, asked.overlay_path).requires, asked.overlay_path)
        print("\n".join(pin(base_tree(asked.python), load(asked.name, asked.overlay_path), required)))
    elif asked.verb == "rebase":
        return _rebase(asked)
    else:
        return _verify(asked, base_tree(asked.python))
    return 0


def _verify(asked: argparse.Namespace, base: BaseTree) -> int:
    print(f"engine {base.version} ({base.build}) at {base.package}")
    if asked.names:
        return _verify_set(asked, base)
    codes = [_verify_one(asked, base, name) for name in known(asked.overlay_path)]
    return next((code for code in (2, 6) if code in codes), 0)


def _verify_one(asked: argparse.Namespace, base: BaseTree, name: str) -> int:
    try:
        overlays = with_required([name], asked.overlay_path)
        expect_fit(survey(base, overlays).rows)
        _try_imports(asked, base, overlays)
    except OverlayError as error:
        print(f"{name:24} {'DRIFT' if isinstance(error, DriftError) else 'WRONG'}  {error}")
        return exit_code(error)
    print(f"{name:24} fits")
    return 0


def _verify_set(asked: argparse.Namespace, base: BaseTree) -> int:
    """Every row of the composed manifest, the wrong ones explained."""
    overlays = with_required(asked.names, asked.overlay_path)
    rows = survey(base, overlays).rows
    for row in rows:
        print(format_row(row))
    expect_fit(rows)
    _try_imports(asked, base, overlays)
    files, of = ("the one file" if len(rows) == 1 else f"all {len(rows)} files"), len(overlays)
    fits = "fits" if len(rows) == 1 else "fit"
    import_too = (" and imports" if len(rows) == 1 else " and import") if asked.imports else ""
    print(f"{files} of {of} overlay{'' if of == 1 else 's'} {fits}{import_too}")
    return 0


def _try_imports(asked: argparse.Namespace, base: BaseTree, overlays: Sequence[Overlay]) -> None:
    if asked.imports:
        smoke.expect_imports(base, stage(base, overlays, asked.stages))


def _rebase(asked: argparse.Namespace) -> int:
    overlay = load(asked.name, asked.overlay_path)
    old, new = engine_of(asked.from_engine), engine_of(asked.to_engine)
    rebased = rebase(overlay, with_required(overlay.requires, asked.overlay_path), old, new)
    out = asked.out or ROOT / "build" / "rebase" / f"{overlay.name}-{new.version}"
    leave(rebased, out)
    print(f"{overlay.name}: vLLM {old.version} ({old.build}) to {new.version} ({new.build})")
    print("\n".join(format_lines(rebased)))
    print(f"review  {out / PAGE}")
    return 0 if rebased.settled else 6


def format_row(row: Row) -> str:
    """One file of a composed manifest."""
    return f"{row.overlay:24} {row.kind.value:8} {row.path:44} {row.state}"


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
        plugin = overlay.plugin
        lines.append(f"plugin    {plugin.object}, wraps {', '.join(plugin.wraps)}")
        lines.append(f"payload   {plugin.payload.name}/  -> {plugin.payload_sha256[:12]}")
    lines += [f"landed    {part.what}: engines whose {part.path} holds {part.text!r}" for part in overlay.landed]
    for target in overlay.targets:
        unread = "" if target.reviewed else ", not reviewed"
        lines.append(f"target    vLLM {target.version} ({', '.join(target.builds)}{unread})")
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
