"""Options from a file (``--config``) and from the environment (``KUBEWRIGHT_*``), as words of the command line.

The command line wins over the environment, and that over the file, option by option.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from kubewright.tools.arguments.parsing import nearest

PREFIX: Final = "KUBEWRIGHT_"
_OWN: Final = ("--help", "--config")
"""Options that a file and the environment cannot set; the environment names the file, though."""
_BOOLS: Final = {"true": True, "false": False}


class SettingError(ValueError):
    """A setting that is no option, or a value that its option refuses."""


def settled(parser: argparse.ArgumentParser, words: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """The command line with the settings of the environment and of the file in front. Raises SettingError."""
    if any(word == "-h" or word.partition("=")[0] == "--help" for word in words):
        return [*words]
    given = _given(parser, words)
    before: list[str] = []
    known = _options(parser)
    _refuse_misspelt(known, environ)
    for name, action in known.items():
        variable = _variable(name)
        text = environ.get(variable)
        if text is not None and action not in given:
            before += _words(parser, action, name, text, variable)
            given.append(action)
    config = _config(parser, words, environ)
    if config is not None:
        for name, value, place in _settings(config):
            if name not in known:
                raise SettingError(f"{place}: there is no option {name!r}{nearest(name, known)}")
            if known[name] not in given:
                before += _words(parser, known[name], name, value, place)
    return [*before, *words]


def _options(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    """Option without dashes → what it does."""
    return {
        option[2:]: action
        for action in parser._actions
        for option in action.option_strings
        if option.startswith("--") and option not in _OWN
    }


def _refuse_misspelt(known: Mapping[str, argparse.Action], environ: Mapping[str, str]) -> None:
    """Refuses variables that are nearly an option: one that has no effect could leave a server open."""
    variables = {_variable(name) for name in known} | {f"{PREFIX}CONFIG"}
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in variables and (near := nearest(name, variables, 0.95)):
            raise SettingError(f"{name}: there is no such option{near}")


def _variable(name: str) -> str:
    return PREFIX + name.replace("-", "_").upper()


def _given(parser: argparse.ArgumentParser, words: Sequence[str]) -> list[argparse.Action]:
    known = parser._option_string_actions
    return [known[word.partition("=")[0]] for word in words if word.partition("=")[0] in known]


def _config(parser: argparse.ArgumentParser, words: Sequence[str], environ: Mapping[str, str]) -> Path | None:
    """The file that ``--config`` names, by itself: the rest of the words may be wrong."""
    own = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    own.add_argument("--config", type=Path)
    try:
        found: Path | None = own.parse_known_args(words)[0].config
    except argparse.ArgumentError:
        return None  # without a value: the parser of all options says so
    named = environ.get(f"{PREFIX}CONFIG")
    return found or (Path(named) if named else None)


def _settings(path: Path) -> Iterator[tuple[str, Any, str]]:
    """Option, value and place of each line of the file. Raises SettingError."""
    from kubewright.diagnostics import Diagnostics  # not above: --help imports nothing of this
    from kubewright.location import escape_pointer
    from kubewright.source.text import read_single

    diagnostics = Diagnostics()
    document = read_single(path, diagnostics, modern=True)
    if document is None or diagnostics.has_errors:
        why = "; ".join(str(each) for each in diagnostics) or f"{path}: is empty"
        raise SettingError(f"--config: {why}")
    if not isinstance(document.value, dict):
        raise SettingError(f"--config: {path}: write options and their values, such as `port: 7125`")
    for name, value in document.value.items():
        yield name, value, str(document.at(f"/{escape_pointer(name)}"))


def _words(
    parser: argparse.ArgumentParser, action: argparse.Action, name: str, value: Any, place: str
) -> list[str]:
    """The words that set an option, checked by it. Raises SettingError."""
    if isinstance(action, argparse._StoreTrueAction):
        on = _BOOLS.get(str(value).lower())
        if on is None:
            raise SettingError(f"{place}: {name}: {value!r} is neither true nor false")
        return [f"--{name}"] if on else []
    is_list = isinstance(value, list)
    if is_list and not isinstance(action, argparse._AppendAction):
        raise SettingError(f"{place}: {name}: takes one value, not a list")
    texts = [_text(each, f"{place}: {name}") for each in (value if is_list else [value])]
    for text in texts:
        try:
            parser._get_values(action, [text])
        except argparse.ArgumentError as fault:
            raise SettingError(f"{place}: {name}: {fault.message}") from None
    return [f"--{name}={text}" for text in texts]


def _text(value: Any, place: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int | float):
        raise SettingError(f"{place}: give text, a number, true or false")
    return str(value)
