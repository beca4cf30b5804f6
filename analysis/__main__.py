"""`python -m analysis ledger`: a tracker's verdicts as a table. 0 done, 2 what was typed or found is not usable."""

import argparse
import os
import sys
from pathlib import Path

from analysis import ledger
from analysis.row import AnalysisError

ROOT = Path(__file__).resolve().parent.parent
CONFIG = 2


def main(words: list[str]) -> int:
    """One command; an error that is expected is one sentence on stderr."""
    asked = _parser().parse_args(words)
    try:
        _ledger(asked.uri, asked.out)
    except AnalysisError as error:
        print(f"config ({CONFIG}): {error}", file=sys.stderr)
        return CONFIG
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m analysis")
    verbs = parser.add_subparsers(required=True)
    own = verbs.add_parser("ledger", help="one row a verdict, newest first, with its interval")
    default = os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{ROOT / 'runs' / 'mlflow.db'}"
    own.add_argument("--uri", default=default, help="the tracker (default: MLFLOW_TRACKING_URI, else runs/mlflow.db)")
    own.add_argument("--out", type=Path, help=f"a Markdown file with the markers {ledger.BEGIN} and {ledger.END}")
    return parser


def _ledger(uri: str, out: Path | None) -> None:
    """Print the table, or put it between the markers of a file; a file that would not change is left alone."""
    document = _document(out) if out else ""
    from analysis import runs

    text = ledger.table(runs.verdicts(uri))
    if out is None:
        print(text, end="")
        return
    written = ledger.placed(document, text)
    if written != document:
        aside = out.with_name(f".{out.name}.aside")
        aside.write_text(written, encoding="utf-8")
        aside.replace(out)


def _document(out: Path) -> str:
    try:
        document = out.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise AnalysisError(f"--out {out} cannot be read: {error}; name a Markdown file that is there") from error
    ledger.placed(document, "")
    return document


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
