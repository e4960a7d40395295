"""Pages of the site that are made from the code: commands, configuration, rules of lint, the Python API.

A hook of MkDocs (see mkdocs.yml). Documents that the navigation does not name are listed among the guides, so that none
is lost.
"""

from __future__ import annotations

import argparse
import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

MODULES = [
    "kubewright.testing.server",
    "kubewright.testing.faults",
    "kubewright.testing.history",
    "apimachinery.client.connection",
    "apimachinery.client.async_connection",
    "apimachinery.client.config",
    "apimachinery.client.errors",
    "apimachinery.client.resource",
    "apimachinery.client.reflector",
    "apimachinery.client.informer",
    "apimachinery.client.local",
    "apimachinery.controller.controller",
    "apimachinery.controller.operator",
    "apimachinery.controller.election",
    "apimachinery.meta.scheme",
    "apimachinery.conversion.versions",
    "apimachinery.merge.apply",
    "apimachinery.cel.environment",
]


def on_config(config: Any) -> Any:
    """Puts documents that nobody listed among the guides."""
    named = set(re.findall(r"[\w/.-]+\.md", str(config.nav)))
    guides = next(entry["Guides"] for entry in config.nav if "Guides" in entry)
    folder = Path(config.docs_dir)
    for path in sorted(folder.rglob("*.md")):
        name = path.relative_to(folder).as_posix()
        if name not in named:
            title = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
            guides.append({title: name})
    return config


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages that are made."""
    pages = {
        "reference/cli.md": command_line(),
        "reference/lint.md": rules_of_lint(),
        "reference/configuration.md": configuration(),
        "reference/python.md": python_api(),
    }
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Makes links of documents that are named in passing (``docs/rules.md``)."""
    depth = page.file.src_uri.count("/")

    def link(found: re.Match[str]) -> str:
        return f"[{found[1]}]({'../' * depth}{found[1]})" if files.get_file_from_path(found[1]) else found[0]

    parts = re.split(r"(^ *```.*?^ *```$|`[^`\n]*`|\]\([^)]*\))", markdown, flags=re.DOTALL | re.MULTILINE)
    return "".join(
        part if at % 2 else re.sub(r"\bdocs/([\w/-]+\.md)", link, part) for at, part in enumerate(parts)
    )


def command_line() -> str:
    """Every command with its options and examples."""
    from kubewright.cli import COMMANDS, parser_of

    lines = ["# Command line", "", "Made from the program. `kubewright --version` and `kubewright --help` come first.", ""]
    group = ""
    for name, command in COMMANDS.items():
        if command.group != group:
            group = command.group
            lines += [f"## {group}", ""]
        lines += [f"### kubewright {name}", "", command.summary[:1].upper() + command.summary[1:] + ".", ""]
        if command.extra:
            lines += [f"Needs `pip install 'kubewright[{command.extra}]'`.", ""]
        parser = parser_of(name)
        lines += _options(parser, "")
        lines += ["```sh", *(each.strip() for each in (parser.epilog or "").splitlines()[1:] if each.strip()), "```", ""]
    return "\n".join(lines)


def _options(parser: argparse.ArgumentParser, below: str) -> list[str]:
    rows = []
    inner: list[str] = []
    formatter = parser._get_formatter()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, each in action.choices.items():
                inner += [f"**{name}**", "", *_options(each, name)]
            continue
        if "--help" in action.option_strings:
            continue
        what = ", ".join(f"`{each}`" for each in action.option_strings) or f"`{action.metavar or action.dest}`"
        value = ""
        if action.choices:
            value = ", ".join(f"`{each}`" for each in action.choices)
        elif action.option_strings and action.nargs != 0:
            value = f"`{action.metavar or action.dest.upper()}`"
        text = formatter._expand_help(action) if action.help not in (None, argparse.SUPPRESS) else ""
        rows.append(f"| {what} | {value} | {_cell(text)} |")
    table = ["| option | value | |", "|---|---|---|", *rows, ""] if rows else []
    return [*table, *inner]


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def rules_of_lint() -> str:
    """Every rule with its reason, source and remedy."""
    from kubewright.tools.lint.run import load_rules

    lines = ["# Rules of lint", "", "Made from the program; `kubewright lint --explain CODE` says the same.", ""]
    for rule in load_rules().values():
        check = rule.of_place or rule.of_kind or rule.of_api
        profiles = ", ".join(sorted(rule.profiles))
        lines += [f"## {rule.code} {rule.name}", "", f"*{rule.severity.value}; profiles: {profiles}*", ""]
        lines += [_prose((check.__doc__ or "").strip()), ""]
        for title, text in (("Why", rule.rationale), ("Do", rule.hint), ("Source", rule.source)):
            lines += [f"{title}: {_prose(text)}", ""]
    return "\n".join(lines)


def configuration() -> str:
    """The configuration of generate and of lint."""
    from kubewright import config
    from kubewright.tools.lint import command

    package = {name: each for name, each in inspect.get_annotations(config.Package).items()}
    keys = sorted(config._PACKAGE_KEYS)
    lines = ["# Configuration", "", "## kubewright.yaml", "", _docstring(config.__doc__ or ""), "", "Keys of a package:", ""]
    lines += [f"- `{key}`" + (f": {package[key]}" if key in package else "") for key in keys]
    lines += ["", "## Lint", "", "`[tool.kubewright.lint]` of pyproject.toml, or a file given by `--config`:", ""]
    lines += [f"- `{key}`" for key in sorted(command._KEYS)]
    return "\n".join([*lines, "", "Examples and meanings: [the tools](../tools.md).", ""])


def python_api() -> str:
    """The public names of modules that people import, by their docstrings."""
    lines = ["# Python API", "", "Made from docstrings. Generated packages have the same form for every API.", ""]
    for name in MODULES:
        try:
            module = import_module(name)
        except ModuleNotFoundError:
            continue
        lines += [f"## {name}", "", _docstring(module.__doc__ or ""), ""]
        for label, value in vars(module).items():
            if label.startswith("_") or getattr(value, "__module__", "") != name:
                continue
            if inspect.isclass(value):
                lines += [f"### class {label}", "", *_signature(label, value), _docstring(value.__doc__ or ""), ""]
                for method, function in vars(value).items():
                    plain = function.fget if isinstance(function, property) else inspect.unwrap(getattr(function, "__func__", function))
                    if method.startswith("_") or not inspect.isfunction(plain) or not plain.__doc__:
                        continue
                    lines += [f"**{method}**", "", *_signature(method, plain), _docstring(plain.__doc__), ""]
            elif inspect.isfunction(value):
                lines += [f"### {label}", "", *_signature(label, value), _docstring(value.__doc__ or ""), ""]
    return "\n".join(lines)


def _signature(name: str, value: Any) -> list[str]:
    try:
        shown = str(inspect.signature(value))
    except (TypeError, ValueError):
        return []
    return ["```python", f"{name}{shown}", "```", ""]


def _docstring(text: str) -> str:
    """A docstring as Markdown: literal blocks stay indented code, double backticks become single ones."""
    text = inspect.cleandoc(text).replace("``", "`")
    text = re.sub(r"::\n\n((?: {4}[^\n]*\n?|\n)+)", lambda m: ":\n\n" + m[1], text + "\n")
    out, in_code = [], False
    for line in text.splitlines():
        in_code = line.startswith("    ")
        out.append(line if in_code else _prose(line))
    return "\n".join(out)


def _prose(text: str) -> str:
    return re.sub(r"<(?=[A-Za-z/])", "&lt;", text)
