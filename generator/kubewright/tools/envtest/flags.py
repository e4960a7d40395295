"""kube-apiserver's command line, as Go reads it, in the words of ``kubewright serve``.

Go's flags differ from argparse's: a switch takes a value only behind ``=`` (``--profiling``, ``--profiling=false``),
lists given twice are joined, ``-v 2`` is ``--v=2``. Faults are said as kube-apiserver says them.
"""

from __future__ import annotations

import argparse
import ipaddress
import re
from collections.abc import Iterator, Sequence
from typing import Final, NoReturn
from urllib.parse import urlsplit

from kubewright.tools.arguments import serve, serve_names
from kubewright.tools.arguments.serve_names import BOOLS, SWITCHES

_FAULT = re.compile(r"argument (?P<option>\S+): (?P<why>.*)", re.DOTALL)
_JOINED: Final = (
    "--admission-control",
    "--authorization-mode",
    "--api-audiences",
    "--requestheader-allowed-names",
    "--requestheader-username-headers",
    "--requestheader-uid-headers",
    "--requestheader-group-headers",
    "--requestheader-extra-headers-prefix",
    "--etcd-servers",
    "--tls-cipher-suites",
    "--cors-allowed-origins",
    "--strict-transport-security-directives",
    "--oidc-signing-algs",
)
"""Lists that serve takes in one piece."""


class FlagError(ValueError):
    """A command line that kube-apiserver refuses; the text is what it says."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        fault = _FAULT.match(message)
        if fault is None:
            raise FlagError(message)
        raise FlagError(f'invalid argument for "{fault["option"].split("/")[-1]}" flag: {fault["why"]}')


def make_parser() -> argparse.ArgumentParser:
    """The parser of serve's options, with kube-apiserver's way to refuse."""
    parser = _Parser(prog="kube-apiserver", add_help=False, allow_abbrev=False)
    serve.add_arguments(parser)
    return parser


def usage(parser: argparse.ArgumentParser) -> str:
    """The help: who starts a kube-apiserver looks there whether it has a flag."""
    lines = [
        "kubewright in place of kube-apiserver, for tests",
        "",
        "Usage:",
        "  kube-apiserver [flags]",
        "",
        "Flags:",
        "",
    ]
    lines += [
        f"      {name} {'' if _is_switch(action) else 'value'}".rstrip()
        for action in parser._actions
        for name in action.option_strings
        if name.startswith("--") and name not in serve_names.NOT_HERE
    ]
    return "\n".join([*lines, "  -h, --help", "      --version", ""])


def read(words: Sequence[str]) -> argparse.Namespace:
    """The options of serve that kube-apiserver's words come to. Raises FlagError."""
    parser = make_parser()
    given: list[str] = []
    joined: dict[str, list[str]] = {}
    for name, value in _pairs(words, parser):
        action = parser._option_string_actions[name]
        if name in _JOINED:
            joined.setdefault(name, []).append(value)
        elif isinstance(action, argparse._StoreTrueAction):
            given += [name] if value == "true" else []
        else:
            given.append(f"{name}={value}")
    given += [f"{name}={','.join(values)}" for name, values in joined.items()]
    return parser.parse_args([*_usual(given), *given])


def _usual(given: Sequence[str]) -> Iterator[str]:
    """What kube-apiserver does unless it is told otherwise, where serve's own ways differ."""
    names = {word.partition("=")[0] for word in given}
    yield "--log-level=warning"
    if not names & {"--host", "--bind-address"}:
        yield "--bind-address=0.0.0.0"
    if not names & {"--authorization-mode", "--authorization-config"}:
        yield "--authorization-mode=AlwaysAllow"
    if not names & {"--storage", "--etcd-servers"}:
        yield "--storage=memory://"


def _pairs(words: Sequence[str], parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    """Options and their values, as Go takes them apart. Raises FlagError."""
    waiting = iter(words)
    for word in waiting:
        if not word.startswith("-") or word in ("-", "--"):
            rest = [each for each in (word, *waiting) if each != "--"]
            if not rest:
                return
            shown = " ".join(f'"{each}"' for each in rest)
            raise FlagError(f'"kube-apiserver" does not take any arguments, got [{shown}]')
        if not word.startswith("--"):
            if not word.startswith("-v"):
                raise FlagError(f"unknown shorthand flag: '{word[1]}' in {word}")
            word = f"--v={word[2:].removeprefix('=')}" if word[2:] else "--v"
        name, found, value = word.partition("=")
        action = parser._option_string_actions.get(name)
        if action is None:
            raise FlagError(f"unknown flag: {name}")
        if _is_switch(action):
            value = _bool(name, value if found else "true")
        elif not found and (following := next(waiting, None)) is not None:
            value = following
        elif not found:
            raise FlagError(f"flag needs an argument: {name}")
        if name != "--advertise-address" or not _is_loopback(value):
            # Nobody else reaches loopback, so it is not published.
            yield name, value


def _is_switch(action: argparse.Action) -> bool:
    return (
        isinstance(action, argparse._StoreTrueAction)
        or (action.choices is not None and "true" in action.choices)
        or not SWITCHES.isdisjoint(action.option_strings)
    )


def _bool(name: str, value: str) -> str:
    if value not in BOOLS:
        raise FlagError(
            f'invalid argument "{value}" for "{name}" flag: strconv.ParseBool: parsing "{value}": invalid syntax'
        )
    return "true" if BOOLS[value] else "false"


def _is_loopback(text: str) -> bool:
    try:
        return ipaddress.ip_address(text).is_loopback
    except ValueError:
        return False


def is_ours(servers: str, version: str, seconds: float = 5.0) -> bool:
    """Whether ``--etcd-servers`` names the etcd of these assets, which keeps nothing."""
    import http.client
    import json

    url = urlsplit(servers.split(",")[0].strip())
    if url.scheme != "http" or not url.hostname:
        return False
    connection = http.client.HTTPConnection(url.hostname, url.port or 2379, timeout=seconds)
    try:
        connection.request("GET", "/version")
        return bool(json.loads(connection.getresponse().read(4096)).get("etcdserver") == version)
    except (OSError, ValueError, AttributeError, http.client.HTTPException):
        # A real one that is not up yet, or speaks another protocol: the storage says what is wrong with it.
        return False
    finally:
        connection.close()
