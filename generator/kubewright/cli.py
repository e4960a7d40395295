"""The command line: one table of sub-commands, each imported only when it is called.

A sub-command is a module with ``run(options) -> int`` and another, ``tools.arguments.NAME``, with ``EXAMPLES`` and
``add_arguments(parser)``: that is all that ``--help`` and completion read. To add one, add its line to ``COMMANDS``.
Options that several commands have are spelled alike in all of them: ``--kubernetes RELEASE``, ``--crds PATH``,
``-o/--output PATH``, ``--format``, ``-q/--quiet``; spellings of former releases are refused with the new one
(``RENAMED``). Exit codes, the same for all of them:

- 0: success, no objection
- 1: the answer is no (drift found by ``--check``, invalid input, a conflict)
- 2: the command line or the input could not be understood
- 3: the machine refused (files, network), or an extra is not installed
- 70: a bug of ours; please report it with what is printed
- 130: interrupted
"""

from __future__ import annotations

import gc
import io
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

from apimachinery.meta.version import VERSION

if TYPE_CHECKING:  # ``--version`` is asked by every script, and needs no parser
    import argparse

    from kubewright.tools.arguments.parsing import Parser


class SubCommand(NamedTuple):
    """One sub-command: its module, one line of help, the group it is listed in, and the extra that it needs."""

    module: str
    summary: str
    group: str
    extra: str


COMMANDS: Final[dict[str, SubCommand]] = {
    "generate": SubCommand(
        "kubewright.tools.generate",
        "generate typed models, clients and more from API descriptions",
        "Generate",
        "generate",
    ),
    "sdk": SubCommand(
        "kubewright.tools.sdk",
        "build an installable typed client from CRDs, OpenAPI or a live cluster",
        "Generate",
        "generate",
    ),
    "crd": SubCommand(
        "kubewright.tools.crd.command",
        "write CustomResourceDefinitions from any API description",
        "Generate",
        "generate",
    ),
    "docs": SubCommand(
        "kubewright.tools.docs.command",
        "write reference documentation: Markdown, or one searchable HTML page",
        "Generate",
        "generate",
    ),
    "editor": SubCommand(
        "kubewright.tools.editor",
        "write schemas and settings so that editors complete and check manifests",
        "Generate",
        "generate",
    ),
    "scaffold": SubCommand(
        "kubewright.tools.scaffold.command",
        "create the files of an API group, a kind, a version, a controller or a webhook",
        "Generate",
        "generate",
    ),
    "validate": SubCommand(
        "kubewright.tools.validate.command",
        "check manifests and CRDs offline, as kube-apiserver would",
        "Judge",
        "check",
    ),
    "lint": SubCommand(
        "kubewright.tools.lint.command",
        "check API descriptions against the Kubernetes API conventions",
        "Judge",
        "check",
    ),
    "diff": SubCommand(
        "kubewright.tools.diff.command",
        "show what changed between two states of an API, and what it breaks",
        "Judge",
        "check",
    ),
    "lifecycle": SubCommand(
        "kubewright.tools.lifecycle.command",
        "check a plan of API versions against the deprecation policy",
        "Judge",
        "check",
    ),
    "explain": SubCommand(
        "kubewright.tools.explain", "describe the fields of a kind, without a cluster", "Judge", "check"
    ),
    "cel": SubCommand(
        "kubewright.tools.cel",
        "evaluate CEL expressions; check CRD validation rules and their cost",
        "Judge",
        "cel",
    ),
    "serve": SubCommand(
        "kubewright.tools.serve.command",
        "run an API server for generated packages and CRDs",
        "Serve",
        "server",
    ),
    "envtest": SubCommand(
        "kubewright.tools.envtest.command",
        "replace envtest's kube-apiserver and etcd (KUBEBUILDER_ASSETS)",
        "Serve",
        "server",
    ),
    "testserver": SubCommand(
        "kubewright.tools.testserver",
        "run a test server: prints a kubeconfig, exits with its parent process",
        "Serve",
        "server",
    ),
    "webhook": SubCommand(
        "kubewright.tools.webhook.command",
        "serve a generated package's conversion, defaults and validation as a webhook",
        "Serve",
        "server",
    ),
    "rbac": SubCommand(
        "kubewright.tools.rbac.command",
        "show who can do what and why; record least-privilege roles",
        "Serve",
        "server",
    ),
    "explore": SubCommand(
        "kubewright.tools.explore.command",
        "open a page that shows a cluster: live objects, field owners, dry runs of edits",
        "Serve",
        "server",
    ),
    "history": SubCommand(
        "kubewright.tools.history",
        "show who changed an object and when, from a server's history or an audit log",
        "Serve",
        "client",
    ),
    "owners": SubCommand(
        "kubewright.tools.owners",
        "show an object with the field manager of each line",
        "Serve",
        "check",
    ),
    "storage": SubCommand(
        "kubewright.tools.storage", "check, back up and restore the server's database", "Serve", "server"
    ),
    "patch": SubCommand(
        "kubewright.tools.patch",
        "show the result of a patch or server-side apply, without a server",
        "Serve",
        "check",
    ),
    "apply3": SubCommand(
        "kubewright.tools.apply3",
        "compute the patch that client-side apply would send",
        "Serve",
        "check",
    ),
    "migrate": SubCommand(
        "kubewright.tools.migrate.command",
        "find and rewrite deprecated and removed API versions",
        "Upgrade",
        "check",
    ),
    "convert": SubCommand(
        "kubewright.tools.convert",
        "convert objects to another API version, without a cluster",
        "Upgrade",
        "check",
    ),
    "completion": SubCommand(
        "kubewright.tools.completion",
        "print a completion script for bash, zsh or fish",
        "Shell",
        "",
    ),
}
"""Sub-command → what it is. The order is that of the help."""

RENAMED: Final[dict[tuple[str, str], str]] = {
    ("apply3", "--crd"): "--crds",
    ("apply3", "-o"): "--original",
    ("crd", "--out"): "--output",
    ("crd", "--server"): "--kubernetes",
    ("docs", "--out"): "--output",
    ("generate", "--kubernetes-version"): "--kubernetes",
    ("lint", "--quiet-notes"): "--least warning, which is the default",
    ("migrate", "--to"): "--kubernetes",
    ("patch", "--crd"): "--crds",
    ("scaffold", "--out"): "--output",
    ("sdk", "--out"): "--output",
}
"""(Command, option of a former release) → what it is called now."""

OK, REFUSED, MISUSED, BROKEN, BUG, INTERRUPTED = 0, 1, 2, 3, 70, 130

_SERVERS: Final = ("serve", "testserver")
_DISTRIBUTIONS: Final = {"aiohttp": "server", "google": "etcd", "hpack": "etcd"}
"""Modules that one extra alone brings, whatever the command."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one sub-command; returns its exit code. Never raises, except ``SystemExit`` for ``--help`` and for a
    command line that cannot be understood."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        # Half of a surrogate pair, from an escape in a JSON input, must not end the run when it is printed.
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")
    called = next((word for word in given if not word.startswith("-")), "")
    try:
        if given == ["--version"]:
            print(f"kubewright {VERSION}")
            return OK
        parser = make_parser(called)
        if called and called not in COMMANDS:
            from kubewright.tools.arguments.parsing import nearest

            parser.error(f"there is no command {called!r}{nearest(called, COMMANDS)}")
        if called:
            _refuse_renamed(called, given, parser)
            given = _with_settings(called, given)
        options, unknown = parser.parse_known_args(given)
        if unknown:
            _refuse_unknown(parser, called, unknown)
        if not options.command:
            parser.print_help(sys.stderr)
            return MISUSED
        return _call(options, is_process=arguments is None)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away (`| head`): say nothing more, not even at interpreter exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except ModuleNotFoundError as missing:
        module = (missing.name or "").partition(".")[0]
        if module in ("kubewright", "apimachinery"):
            return _report_bug()
        extra = _DISTRIBUTIONS.get(module) or COMMANDS[called].extra
        print(
            f"kubewright {called}: the module {missing.name!r} is not installed\n"
            f"  hint: pip install 'kubewright[{extra}]'",
            file=sys.stderr,
        )
        return BROKEN
    except OSError as error:
        from kubewright.diagnostics import printable  # not above: a start pays for what it imports

        place = f"{error.filename}: " if error.filename else ""
        print(printable(f"kubewright {called}: {place}{error.strerror or error}"), file=sys.stderr)
        return BROKEN
    except Exception:
        return _report_bug()


def _call(options: argparse.Namespace, *, is_process: bool) -> int:
    """Imports a sub-command and runs it."""
    if is_process and options.command in _SERVERS:
        from kubewright.tools.envtest.image import use_kept

        use_kept(options.command)
        # What a server reads at its start stays; it turns the collector on when it is ready.
        gc.disable()
    with _uncollected():
        command = import_module(COMMANDS[options.command].module)
    return int(command.run(options))


@contextmanager
def _uncollected() -> Iterator[None]:
    """Around imports: what they make stays, so the collector would walk over all of it for nothing, several times."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _report_bug() -> int:
    import traceback

    traceback.print_exc()
    print("kubewright: this is a bug of kubewright, not of your input; please report it", file=sys.stderr)
    return BUG


def make_parser(called: str) -> argparse.ArgumentParser:
    """The parser of the command line, with that of the sub-command that is called."""
    from argparse import SUPPRESS

    from kubewright.tools.arguments.parsing import Parser

    parser = Parser(
        prog="kubewright",
        usage="kubewright COMMAND [options]",
        description="Models, clients, checks and servers for Kubernetes-style APIs, from their descriptions.\n\n"
        + _overview(),
        epilog="`kubewright COMMAND --help` lists the options of a command, with examples.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {VERSION}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", help=SUPPRESS, prog="kubewright")
    if (command := COMMANDS.get(called)) is not None:
        summary = command.summary[:1].upper() + command.summary[1:] + "."
        _fill(commands.add_parser(called, description=summary), called)
    return parser


def parser_of(name: str) -> Parser:
    """The parser of one sub-command alone."""
    from kubewright.tools.arguments.parsing import Parser

    own = Parser(prog=f"kubewright {name}")
    _fill(own, name)
    return own


def _fill(own: argparse.ArgumentParser, name: str) -> None:
    module = import_module(f"kubewright.tools.arguments.{name}")
    module.add_arguments(own)
    own.epilog = "examples:\n" + "".join(f"  {line}\n" for line in module.EXAMPLES.strip().splitlines())
    if name == "completion":
        # It speaks of all commands, and lies below the table of them.
        summaries = {each: command.summary for each, command in COMMANDS.items()}
        own.set_defaults(parser_of=parser_of, summaries=summaries)


def _overview() -> str:
    lines: list[str] = []
    group = ""
    for name, command in COMMANDS.items():
        if command.group != group:
            group = command.group
            lines += ["", f"{group}:"] if lines else [f"{group}:"]
        lines.append(f"  {name:12}{command.summary}")
    return "\n".join(lines)


def _refuse_renamed(called: str, given: Sequence[str], parser: argparse.ArgumentParser) -> None:
    for word in given:
        if word == "--":
            return
        new = RENAMED.get((called, word.partition("=")[0]))
        if new is not None:
            parser_of(called).error(f"{word.partition('=')[0]} is now {new}")


def _with_settings(called: str, given: list[str]) -> list[str]:
    """The command line with what the environment and files set, for a command that reads them."""
    given_words = getattr(import_module(f"kubewright.tools.arguments.{called}"), "given_words", None)
    if given_words is None:
        return given
    own, start = parser_of(called), given.index(called) + 1
    try:
        return [*given[:start], *given_words(own, given[start:], os.environ)]
    except ValueError as fault:
        own.error(str(fault))


def _refuse_unknown(parser: argparse.ArgumentParser, called: str, unknown: Sequence[str]) -> NoReturn:
    """Refuses words that no option takes, with the option that they are nearest to."""
    from kubewright.tools.arguments.parsing import nearest

    option = next((word for word in unknown if word.startswith("-")), "")
    own = parser_of(called)
    if not option:
        own.error(f"unexpected: {' '.join(unknown)}")
    # Not out of the help, where a long option may be broken at a hyphen.
    known = {text for action in own._actions for text in action.option_strings if text.startswith("--")}
    name = option.partition("=")[0]
    longer = sorted(each for each in known if each.startswith(name)) if name.startswith("--") else []
    hint = f"; did you mean {longer[0]}? Options are written out" if longer else nearest(name, known)
    own.error(f"there is no option {name}{hint}")


if __name__ == "__main__":
    sys.exit(main())
