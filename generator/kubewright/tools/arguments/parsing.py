"""The parser of every command: a short usage line, and options of many by groups (``--help=GROUP``)."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final, NoReturn

ALL: Final = "all"
"""What ``--help=all`` asks for: the options of every group."""
_MISUSED: Final = 2


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Help as wide as the terminal. argparse's own way to ask that imports what packs archives."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_columns() - 2)


def _columns() -> int:
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given):
        return int(given)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or 80 if sys.__stdout__ else 80
    except (OSError, ValueError):  # no terminal, or closed
        return 80


class Parser(argparse.ArgumentParser):
    """A parser without abbreviated options, whose epilog keeps its lines.

    Options of an argument group are listed by ``--help=TITLE`` and ``--help=all`` alone, so that the help of a command
    with many options fits a screen.
    """

    def __init__(self, **options: Any) -> None:
        options.setdefault("allow_abbrev", False)
        options.setdefault("formatter_class", _Formatter)
        super().__init__(**options, add_help=False)
        self._help = self.add_argument("-h", "--help", action=_Help, help="show this help")

    def add_argument_group(self, *words: Any, **options: Any) -> argparse._ArgumentGroup:
        """Add a group; from then on ``--help`` takes the name of one."""
        group = super().add_argument_group(*words, **options)
        if hasattr(self, "_help"):
            self._help.nargs, self._help.help = "?", f"show this help, the options of a group, or {ALL}"
        return group

    def error(self, message: str) -> NoReturn:
        """Exit with the fault of the command line and where to look; the usage alone would not name it."""
        from kubewright.diagnostics import printable

        self.exit(_MISUSED, f"{self.prog}: error: {printable(message)}\n  hint: {self.prog} --help\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as fault:
            fault.message += nearest(str(value), map(str, action.choices or ()))
            raise

    def groups(self) -> dict[str, argparse._ArgumentGroup]:
        """The groups of options beyond the everyday ones, by title."""
        own = (self._positionals, self._optionals)
        return {str(group.title): group for group in self._action_groups if group not in own}

    def format_usage(self) -> str:
        """One line: the command, ``[options]``, and what must be given."""
        return self._begun().format_help()

    def format_help(self, wanted: str = "") -> str:
        """The everyday options and the names of the groups; or the options of one group, or of all."""
        formatter = self._begun()
        groups = self.groups()
        if wanted in groups:
            _add_section(formatter, groups[wanted])
            return formatter.format_help()
        formatter.add_text(self.description)
        for group in (self._positionals, self._optionals):
            _add_section(formatter, group)
        if wanted == ALL:
            for group in groups.values():
                _add_section(formatter, group)
        elif groups:
            formatter.add_text(_overview(groups.values()))
        formatter.add_text(self.epilog)
        return formatter.format_help()

    def _begun(self) -> argparse.HelpFormatter:
        formatter = self.formatter_class(prog=f"{self.prog} [options]")
        needed = [action for action in self._actions if action.required or not action.option_strings]
        formatter.add_usage(self.usage, needed, [])
        return formatter


def nearest(word: str, known: Iterable[str], likeness: float = 0.6) -> str:
    """A hint at the name that was meant, empty where none is near."""
    from difflib import get_close_matches  # not above: every start would pay for it

    near = get_close_matches(word, sorted(known), 1, likeness)
    return f"; did you mean {near[0]}?" if near else ""


def _add_section(formatter: argparse.HelpFormatter, group: argparse._ArgumentGroup) -> None:
    formatter.start_section(group.title)
    formatter.add_text(group.description)
    formatter.add_arguments(group._group_actions)
    formatter.end_section()


def _overview(groups: Iterable[argparse._ArgumentGroup]) -> str:
    lines = [f"  --help={group.title:15} {group.description}" for group in groups]
    return "\n".join(["more options:", *lines, f"  --help={ALL:15} every option"])


class _Help(argparse.Action):
    """Prints the help and exits."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:
        super().__init__(
            option_strings,
            argparse.SUPPRESS,
            nargs=0,
            const="",
            default=argparse.SUPPRESS,
            metavar="GROUP",
            help=help,
        )

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: Any, value: Any, name: str | None = None
    ) -> None:
        assert isinstance(parser, Parser)
        groups = parser.groups()
        value = value or ""  # without groups it is the empty list of no values
        if value and value not in groups and value != ALL:
            parser.error(
                f"--help={value}: there is no such group{nearest(value, [*groups, ALL])}; of {', '.join(groups)}"
            )
        parser._print_message(parser.format_help(value), sys.stdout)
        parser.exit()
