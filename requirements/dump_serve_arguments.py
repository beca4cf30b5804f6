"""Print the serve arguments that the installed engine knows, as JSON: name (with underscores) -> how it takes a value.

Run by the engine's python (`make serve-arguments`); the output is committed, so that a misspelt argument is refused
without a boot. "switch" takes no value and has a --no- form, "value" takes one.
"""

import contextlib
import json
import sys

with contextlib.redirect_stdout(sys.stderr):
    from vllm.entrypoints.launchers.cli_args import make_arg_parser
    from vllm.utils.argparse_utils import FlexibleArgumentParser
    from vllm.version import __version__

    parser = make_arg_parser(FlexibleArgumentParser())

arguments = {}
for action in parser._actions:
    options = [o for o in action.option_strings if o.startswith("--") and not o.startswith("--no-")]
    for option in options:
        arguments[option[2:].replace("-", "_")] = "switch" if action.nargs == 0 else "value"
found = {"engine": "vllm", "version": __version__, "arguments": dict(sorted(arguments.items()))}
sys.stdout.write(json.dumps(found, indent=1) + "\n")
