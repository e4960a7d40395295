"""``kubewright completion SHELL``: a script that completes commands, options and their values.

The script is made from the parsers themselves and holds everything, so that completing runs no Python.
Exit codes: 0 printed, 2 the shell is not known.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Words:
    """What may follow the words of a command: sub-commands, and options with their help and their values."""

    summary: str = ""
    options: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    """Option → (help, choices)."""
    inner: dict[str, Words] = field(default_factory=dict)


def run(options: argparse.Namespace) -> int:
    """Prints the script."""
    root = _all_words(options.summaries, options.parser_of)
    script = {"bash": bash, "zsh": zsh, "fish": fish}[options.shell](root)
    sys.stdout.write(script)
    return 0


def _all_words(summaries: Mapping[str, str], parser_of: Callable[[str], argparse.ArgumentParser]) -> Words:
    inner = {}
    for name, summary in summaries.items():
        inner[name] = Words(summary, *_words_of(parser_of(name)))
    return Words("", {"--help": ("show this help", ()), "--version": ("show the version", ())}, inner)


def _words_of(
    parser: argparse.ArgumentParser,
) -> tuple[dict[str, tuple[str, tuple[str, ...]]], dict[str, Words]]:
    options: dict[str, tuple[str, tuple[str, ...]]] = {}
    inner: dict[str, Words] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, each in action.choices.items():
                inner[name] = Words(str(each.description or ""), *_words_of(each))
            continue
        choices = tuple(map(str, action.choices)) if action.choices else ()
        if not action.option_strings and choices:
            inner |= {choice: Words() for choice in choices}
        for option in action.option_strings:
            text = "" if action.help in (None, argparse.SUPPRESS) else " ".join(str(action.help).split())
            if "%" in text:
                text = parser._get_formatter()._expand_help(action)
            options[option] = (text, choices)
    return options, inner


def _paths(words: Words, way: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Words]]:
    yield way, words
    for name, inner in words.inner.items():
        yield from _paths(inner, (*way, name))


def bash(root: Words) -> str:
    """The script for bash: a table of words by the sub-commands before them."""
    lines = ["# completion of kubewright for bash; made by `kubewright completion bash`", "_kubewright() {"]
    lines += ["  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} way='' each"]
    names = " | ".join(repr(" ".join(way)) for way, _ in _paths(root) if way)
    lines += ['  for each in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do', '    case "${way:+$way }$each" in']
    lines += [
        f'      {names}) way="${{way:+$way }}$each" ;;',
        "    esac",
        "  done",
        '  case "$way $before" in',
    ]
    for way, words in _paths(root):
        for option, (_, choices) in words.options.items():
            if choices:
                shown = " ".join(choices)
                lines.append(
                    f"    '{' '.join(way)} {option}') COMPREPLY=($(compgen -W '{shown}' -- \"$word\")); return ;;"
                )
    lines += ["  esac", '  case "$way" in']
    for way, words in _paths(root):
        shown = " ".join((*words.inner, *words.options))
        lines.append(f"    '{' '.join(way)}') COMPREPLY=($(compgen -W '{shown}' -- \"$word\")) ;;")
    lines += ["  esac", '  if [[ $word != -* ]]; then COMPREPLY+=($(compgen -f -- "$word")); fi', "}"]
    return "\n".join([*lines, "complete -o filenames -F _kubewright kubewright", ""])


def zsh(root: Words) -> str:
    """The script for zsh: that of bash, which zsh reads through bashcompinit."""
    return (
        "#compdef kubewright\n# completion of kubewright for zsh; made by `kubewright completion zsh`\n"
        "autoload -U +X bashcompinit && bashcompinit\n" + bash(root)
    )


def fish(root: Words) -> str:
    """The script for fish, with the help of every option."""
    lines = ["# completion of kubewright for fish; made by `kubewright completion fish`"]
    for way, words in _paths(root):
        condition = " ; and ".join(f"__fish_seen_subcommand_from {name}" for name in way)
        names = " ".join(words.inner)
        if names:
            none = f"not __fish_seen_subcommand_from {names}"
            for name, inner in words.inner.items():
                when = f"{condition} ; and {none}" if condition else none
                lines.append(f"complete -c kubewright -n '{when}' -a {name} -d {_quoted(inner.summary)}")
        for option, (text, choices) in words.options.items():
            flag = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
            values = f" -x -a {_quoted(' '.join(choices))}" if choices else ""
            when = f" -n '{condition}'" if condition else ""
            lines.append(f"complete -c kubewright{when} {flag}{values} -d {_quoted(text)}")
    return "\n".join([*lines, ""])


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
