"""The command line: one table of sub-commands, each imported only when it is called.

A sub-command is a module with ``add_arguments(parser)`` and ``run(options) -> int``. To add one, add its line to
``COMMANDS``. Exit codes, the same for all of them:

- 0: done, nothing to say against it
- 1: the answer is no (drift found by ``--check``, invalid input, a conflict)
- 2: the command line or the input could not be understood
- 3: the machine refused (files, network)
- 70: a bug of ours; please report it with what is printed
- 130: interrupted
"""

from __future__ import annotations

import argparse
import io
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module

COMMANDS: dict[str, tuple[str, str]] = {
    "cel": ("kubewright.tools.cel", "compute CEL expressions, judge the rules of CRDs and their cost"),
    "diff": (
        "kubewright.tools.diff.command",
        "what changed between two states of an API, and whom it breaks",
    ),
    "sdk": ("kubewright.tools.sdk", "an installable typed client from CRDs, OpenAPI or a live cluster"),
    "lint": (
        "kubewright.tools.lint.command",
        "check API descriptions against conventions and the deprecation policy",
    ),
    "validate": (
        "kubewright.tools.validate.command",
        "judge manifests and CRDs offline, as a kube-apiserver of a release would",
    ),
    "convert": ("kubewright.tools.convert", "objects at another version of their kind, without a cluster"),
    "migrate": (
        "kubewright.tools.migrate.command",
        "find and rewrite API versions that a release deprecates or does not have",
    ),
    "explain": ("kubewright.tools.explain", "what a field of a kind is for, without a cluster"),
    "docs": (
        "kubewright.tools.docs.command",
        "reference pages of an API: Markdown, or one HTML page with a search",
    ),
    "crd": (
        "kubewright.tools.crd.command",
        "CustomResourceDefinition manifests from any description of an API",
    ),
    "lifecycle": (
        "kubewright.tools.lifecycle.command",
        "check a plan of API versions against the deprecation policy; list those of Kubernetes",
    ),
    "scaffold": (
        "kubewright.tools.scaffold.command",
        "the files of an API group, of a kind, of a further version",
    ),
    "serve": ("kubewright.tools.serve.command", "run an API server for generated packages and CRDs"),
    "storage": ("kubewright.tools.storage", "check, back up and restore the database of serve"),
    "patch": (
        "kubewright.tools.patch",
        "what a patch or a server-side apply makes of an object, without a server",
    ),
    "apply3": ("kubewright.tools.apply3", "the patch that client-side apply would send, from three files"),
    "generate": ("kubewright.tools.generate", "make typed models and everything else from API descriptions"),
}
"""Sub-command → (module, one line of help)."""

OK, REFUSED, MISUSED, BROKEN, BUG, INTERRUPTED = 0, 1, 2, 3, 70, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one sub-command; returns its exit code. Never raises, but for ``SystemExit`` of ``--help``."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        # Half of a surrogate pair, from an escape in a JSON input, must not end the run when it is printed.
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")
    parser = _parser(given)
    options = parser.parse_args(given)
    if not options.command:
        parser.print_help(sys.stderr)
        return MISUSED
    try:
        return int(import_module(COMMANDS[options.command][0]).run(options))
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away (`| head`): say nothing more, not even at interpreter exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] in ("kubewright", "apimachinery"):
            return _report_bug()
        print(
            f"kubewright {options.command}: the module {missing.name!r} is not installed\n"
            f"  hint: pip install 'kubewright[{'server' if options.command == 'serve' else 'generate'}]'",
            file=sys.stderr,
        )
        return BROKEN
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        print(f"kubewright {options.command}: {place}{error.strerror or error}", file=sys.stderr)
        return BROKEN
    except Exception:
        return _report_bug()


def _report_bug() -> int:
    traceback.print_exc()
    print("kubewright: this is a bug of kubewright, not of your input; please report it", file=sys.stderr)
    return BUG


def _parser(given: Sequence[str]) -> argparse.ArgumentParser:
    """The parser of the sub-command that is called; of the others only the names are known."""
    parser = argparse.ArgumentParser(
        prog="kubewright",
        description="Kubernetes-style APIs from their descriptions: models, logic, client, server.",
    )
    # Looked up only where it is asked for: reading the metadata of packages is a good part of a start.
    version = _version() if "--version" in given else ""
    parser.add_argument("--version", action="version", version=f"%(prog)s {version}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    called = next((word for word in given if not word.startswith("-")), "")
    for name, (module, text) in COMMANDS.items():
        command = commands.add_parser(name, help=text, description=text[:1].upper() + text[1:] + ".")
        if name == called:
            import_module(module).add_arguments(command)
    return parser


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("kubewright")
    except PackageNotFoundError:
        return "(not installed)"


if __name__ == "__main__":
    sys.exit(main())
