"""Pages of the site that are made from the code: commands, configuration, rules of lint, the Python API.

A hook of MkDocs (see mkdocs.yml). Documents that the navigation does not name are listed among the guides, so that none
is lost.
"""

from __future__ import annotations

import argparse
import inspect
import os
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml
from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))
import diagrams

PAGES = {
    "Testing": [
        "kubewright.testing.server",
        "kubewright.testing.users",
        "kubewright.testing.plugin",
        "kubewright.testing.faults",
        "kubewright.testing.history",
        "kubewright.testing.rbac",
        "kubewright.testing.etcd",
        "kubewright.testing.cluster",
        "kubewright.cli",
    ],
    "Client": [
        "apimachinery.client",
        "apimachinery.client.connection",
        "apimachinery.client.async_connection",
        "apimachinery.client.config",
        "apimachinery.client.errors",
        "apimachinery.client.retry",
        "apimachinery.client.throttle",
        "apimachinery.client.resource",
        "apimachinery.client.async_resource",
        "apimachinery.client.cluster_resource",
        "apimachinery.client.async_cluster_resource",
        "apimachinery.client.calls",
        "apimachinery.client.codecs",
        "apimachinery.client.processes",
        "apimachinery.client.async_processes",
        "apimachinery.client.scale",
        "apimachinery.client.reflector",
        "apimachinery.client.async_reflector",
        "apimachinery.client.informer",
        "apimachinery.client.async_informer",
        "apimachinery.client.local",
        "apimachinery.client.access",
    ],
    "Controllers": [
        "apimachinery.controller",
        "apimachinery.controller.controller",
        "apimachinery.controller.async_controller",
        "apimachinery.controller.operator",
        "apimachinery.controller.async_operator",
        "apimachinery.queue.backlog",
        "apimachinery.queue.work_queue",
        "apimachinery.controller.election",
        "apimachinery.controller.async_election",
        "apimachinery.controller.recorder",
        "apimachinery.queue.prometheus",
        "apimachinery.controller.tracing",
    ],
    "Webhooks": ["apimachinery.webhook", "apimachinery.webhook.webhooks", "apimachinery.webhook.reviews", "apimachinery.webhook.running"],
    "Objects, merging and CEL": [
        "apimachinery.typed.scheme",
        "apimachinery.typed.dataclass_form",
        "apimachinery.typed.object",
        "apimachinery.typed.markers",
        "apimachinery.meta.resources",
        "apimachinery.meta.errors",
        "apimachinery.conversion.versions",
        "apimachinery.openapi.client",
        "apimachinery.openapi.operation",
        "apimachinery.openapi.streams",
        "apimachinery.merge.apply",
        "apimachinery.merge.package",
        "apimachinery.merge.from_openapi",
        "apimachinery.merge.errors",
        "apimachinery.cel.environment",
        "apimachinery.cel.values.types",
        "apimachinery.merge.strategic",
        "apimachinery.merge.strategic_diff",
        "apimachinery.cel.schemas.crd",
    ],
    "Server": [
        "apimachinery.server.process",
        "apimachinery.server.backend",
        "apimachinery.server.catalog.options",
        "apimachinery.kinds.hooks",
        "apimachinery.server.node.behaviour",
        "apimachinery.server.network.services",
    ],
}
"""Page of the Python API → its modules: what documents and examples import, which a test holds against this. Of a
package the names that it lists and none of these modules has."""


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
    reference = next(entry["Reference"] for entry in config.nav if "Reference" in entry)
    reference[0] = {"Commands": ["reference/cli.md", *(f"reference/commands/{name}.md" for name in commands())]}
    version = _version()
    if name := os.environ.get("SITE_VERSION"):  # one of several: .ci/site_versions.py
        version = name
        config.site_url = f"{config.site_url.rstrip('/')}/{name}/"
        config.extra["version"] = {"provider": "mike"}
    config.site_name = f"{config.site_name} {version}"
    config.copyright = f"Kubewright {version}, Apache-2.0"
    return config


def _version() -> str:
    from apimachinery.meta.version import VERSION

    return VERSION


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages that are made."""
    pages = {
        "reference/cli.md": command_line(),
        **{f"reference/commands/{name}.md": command_page(name) for name in commands()},
        "reference/lint.md": rules_of_lint(),
        "changes.md": changes(),
        "reference/configuration.md": configuration(),
        "reference/python.md": python_pages(),
        **{f"reference/python-{slug(title)}.md": python_api(title) for title in PAGES},
    }
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Makes links of documents that are named in passing (``docs/rules.md``)."""
    depth = page.file.src_uri.count("/")
    markdown = re.sub(r"^```mermaid\n(.*?)^```$", lambda m: diagrams.draw(m[1]), markdown, flags=re.DOTALL | re.MULTILINE)

    def link(found: re.Match[str]) -> str:
        return f"[{found[1]}]({'../' * depth}{found[1]})" if files.get_file_from_path(found[1]) else found[0]

    parts = re.split(r"(^ *```.*?^ *```$|`[^`\n]*`|\]\([^)]*\))", markdown, flags=re.DOTALL | re.MULTILINE)
    return "".join(
        part if at % 2 else re.sub(r"\bdocs/([\w/-]+\.md)", link, part) for at, part in enumerate(parts)
    )


OPTION = re.compile(r"<code>(?=[^<]{2,40}<)(--?\w[\w.-]*(?:=[\w.,/-]*)?)</code>")
"""An option that fits on a line of a phone, with its value."""


def on_page_content(html: str, page: Any, config: Any, files: Files) -> str:
    """Keeps options on one line: browsers break them at their dashes."""
    return OPTION.sub(r'<code class="option">\1</code>', html)


def changes() -> str:
    """The changelog, a section a version: the page that says what each version has."""
    return Path(__file__).parents[1].joinpath("CHANGELOG.md").read_text(encoding="utf-8")


def commands() -> list[str]:
    """The names of all commands."""
    from kubewright.cli import COMMANDS

    return [*COMMANDS]


def command_line() -> str:
    """Every command with what it is for; each has a page."""
    from kubewright.cli import COMMANDS

    lines = ["# Command line", "", "Made from the program. `kubewright COMMAND --help` prints the same.", ""]
    group = ""
    for name, command in COMMANDS.items():
        if command.group != group:
            group = command.group
            lines += ["", f"## {group}", "", "| command | |", "|---|---|"]
        lines.append(f"| [kubewright {name}](commands/{name}.md) | {_cell(command.summary)} |")
    return "\n".join([*lines, ""])


def command_page(name: str) -> str:
    """One command: its usage, examples, and options by group."""
    from kubewright.cli import COMMANDS, parser_of

    command, parser = COMMANDS[name], parser_of(name)
    # An option is looked for on the page that explains it.
    lines = ["---", "search: {boost: 4}", "---", "", f"# kubewright {name}", "", command.summary[:1].upper() + command.summary[1:] + ".", ""]
    if command.extra:
        lines += [f"Needs `pip install 'kubewright[{command.extra}]'`.", ""]
    examples = [each.strip() for each in (parser.epilog or "").splitlines()[1:] if each.strip()]
    lines += ["```console", *(f"$ {each}" for each in examples), "```", ""]
    lines += _options(parser, 2)
    return "\n".join(lines)


def _options(parser: argparse.ArgumentParser, level: int) -> list[str]:
    lines = ["```text", parser.format_usage().strip(), "```", ""]
    inner: list[str] = []
    for group in parser._action_groups:
        rows = []
        for action in group._group_actions:
            if isinstance(action, argparse._SubParsersAction):
                for name, each in action.choices.items():
                    inner += [f"{'#' * level} {name}", "", *_options(each, level + 1)]
            elif "--help" not in action.option_strings and action.help != argparse.SUPPRESS:
                rows.append(_option(parser, action))
        if not rows:
            continue
        own = group in (parser._positionals, parser._optionals)
        title = "Arguments" if group is parser._positionals else "Options" if own else str(group.title)
        lines += [f"{'#' * level} {title}", ""]
        if group.description:
            lines += [f"{group.description[:1].upper()}{group.description[1:]}.", ""]
        lines += ["| option | value | |", "|---|---|---|", *rows, ""]
    return [*lines, *inner]


def _option(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    what = ", ".join(f"`{each}`" for each in action.option_strings) or f"`{action.metavar or action.dest}`"
    value = ""
    if action.choices:
        value = ", ".join(f"`{each}`" for each in action.choices)
    elif action.option_strings and action.nargs != 0:
        # A bar would part the cells: the choices are listed.
        value = ", ".join(f"`{each}`" for each in str(action.metavar or action.dest.upper()).split("|"))
    text = parser._get_formatter()._expand_help(action) if action.help else ""
    return f"| {what} | {value} | {_cell(text)} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "&#124;").replace("<", "&lt;").replace("*", "\\*")


def lint_examples() -> dict[str, list[tuple[str, list[str]]]]:
    """Rule → fragments of CRDs that the tests keep, each with what the rule finds in it."""
    cases = yaml.safe_load(Path(__file__).parents[1].joinpath("tests/tools/lint_cases.yaml").read_text())
    found: dict[str, list[tuple[str, list[str]]]] = {}
    shown = yaml.safe_load(Path(__file__).parents[1].joinpath("tests/tools/lint_examples.yaml").read_text())
    for code, given in shown.items():
        for name, example in given.items():
            found.setdefault(code, []).append((_fragment(example), [""] * (name == "bad")))
    for case in cases:
        text = _fragment(case)
        if isinstance(case.get("rule"), str) and text:
            found.setdefault(case["rule"], []).append((text, [str(each) for each in case.get("finds") or ()]))
    return found


def _fragment(case: dict[str, Any]) -> str:
    """The part of a CRD that a case changes, as YAML; empty where it changes none that can be shown."""
    if "text" in case:
        return str(case["text"])
    fragment = {key: case[key] for key in ("patch", "spec", "status", "versions") if key in case}
    fragment |= fragment.pop("patch", {})
    return yaml.safe_dump(fragment, sort_keys=False, default_flow_style=None, width=90) if fragment else ""


def _example_lines(examples: list[tuple[str, list[str]]]) -> list[str]:
    lines: list[str] = []
    bad = next((each for each in examples if each[1]), None)
    good = next((each for each in examples if not each[1]), None)
    if bad is not None:
        lines += ["Bad:", "", "```yaml", bad[0].rstrip(), "```", ""]
        lines += ["```text", *bad[1], "```", ""] if any(bad[1]) else []
    if good is not None:
        lines += ["Good:", "", "```yaml", good[0].rstrip(), "```", ""]
    return lines


def rules_of_lint() -> str:
    """Every rule with its reason, source and remedy."""
    from kubewright.tools.lint.run import load_rules

    examples = lint_examples()
    lines = ["# Rules of lint", "", "Made from the program; `kubewright lint --explain CODE` says the same.", ""]
    for rule in load_rules().values():
        check = rule.of_place or rule.of_kind or rule.of_api
        profiles = ", ".join(sorted(rule.profiles))
        lines += [f"## {rule.code} {rule.name} {{#{rule.code.lower()}}}", "", f"*{rule.severity.value}; profiles: {profiles}*", ""]
        lines += [_prose((check.__doc__ or "").strip()), ""]
        for title, text in (("Why", rule.rationale), ("Do", rule.hint), ("Source", rule.source)):
            lines += [f"{title}: {_prose(text)}", ""]
        lines += _example_lines(examples.get(rule.code, []))
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


def slug(title: str) -> str:
    """The word of a page's address."""
    return re.split(r"\W", title.lower(), maxsplit=1)[0]


def python_pages() -> str:
    """Every module that people import, with what it is for and the page that it is on."""
    lines = ["# Python API", "", "Made from docstrings. Generated packages have the same form for every API.", ""]
    for title, modules in PAGES.items():
        lines += [f"## {title}", "", "| module | |", "|---|---|"]
        for name in modules:
            anchor = name.replace(".", "")
            first = (import_module(name).__doc__ or "").strip().partition("\n\n")[0]
            text = _cell(first.replace("``", "`"))
            lines.append(f"| [{name}](python-{slug(title)}.md#{anchor}) | {text} |")
        lines.append("")
    return "\n".join(lines)


def python_api(title: str) -> str:
    """The public names of the modules of one page, by their docstrings."""
    lines = [f"# {title}", ""]
    for name in PAGES[title]:
        module = import_module(name)
        lines += [f"## {name}", "", _docstring(module.__doc__ or ""), ""]
        for label, value in public_names(module):
            if inspect.isclass(value):
                lines += [f"### class {label}", "", *_signature(label, value), _docstring(value.__doc__ or ""), ""]
                for method, held in vars(value).items():
                    plain = function_of(held)
                    if method.startswith("_") or not inspect.isfunction(plain) or not plain.__doc__:
                        continue
                    is_property = plain is not inspect.unwrap(getattr(held, "__func__", held))
                    lines += [f"**{method}**", "", *_signature(method, plain, is_property=is_property)]
                    lines += [_docstring(plain.__doc__), ""]
            elif inspect.isfunction(value):
                lines += [f"### {label}", "", *_signature(label, value), _docstring(value.__doc__ or ""), ""]
    return "\n".join(lines)


def public_names(module: Any) -> list[tuple[str, Any]]:
    """What a module defines, or a package lists that is of no module with a place of its own."""
    names = getattr(module, "NAMES", None)
    if names is None:
        return [
            (label, value)
            for label, value in vars(module).items()
            if not label.startswith("_") and getattr(value, "__module__", "") == module.__name__
        ]
    shown = {name for several in PAGES.values() for name in several}
    return sorted(
        (label, getattr(module, label))
        for place, labels in names.items()
        if place not in shown
        for label in labels.split()
    )


def function_of(value: Any) -> Any:
    """The function behind a method, a property, a cached property, a class or static method."""
    inner = getattr(value, "fget", None) or getattr(value, "func", None)
    return inner if inner is not None else inspect.unwrap(getattr(value, "__func__", value))


class _Written(str):
    """An annotation as its author wrote it: in a signature the text of one would stand in quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _signature(name: str, value: Any, *, is_property: bool = False) -> list[str]:
    """A call as a block of code, a parameter a line where it is long; a property with its type."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return []

    def written(annotation: Any) -> Any:
        return _Written(annotation) if isinstance(annotation, str) else annotation

    def short(default: Any) -> Any:
        if default is inspect.Parameter.empty:
            return default
        text = re.sub(r"<(\w+\.\w+): .*>|<(?:function|class) '?([\w.]+).*>| at 0x[0-9a-f]+", r"\1\2", repr(default))
        return _Written(text if len(text) <= 60 else "…")

    given = [
        each.replace(annotation=written(each.annotation), default=short(each.default))
        for each in found.parameters.values()
        if each.name not in ("self", "cls")
    ]
    found = found.replace(parameters=given, return_annotation=written(found.return_annotation))
    shown = f"{name}{found}"
    if is_property:
        shown = shown.replace("() -> ", ": ")
    elif len(shown) > 88 and given:
        lines = []
        for count, each in enumerate(given):
            if each.kind is each.KEYWORD_ONLY and (not count or given[count - 1].kind is not each.KEYWORD_ONLY):
                lines += ["*"] if not any(other.kind is each.VAR_POSITIONAL for other in given) else []
            lines.append(str(each))
            if each.kind is each.POSITIONAL_ONLY and given[count + 1 : count + 2] and given[count + 1].kind is not each.kind:
                lines.append("/")
        back = "" if found.return_annotation is found.empty else f" -> {found.return_annotation}"
        shown = f"{name}(\n" + "".join(f"    {line},\n" for line in lines) + f"){back}"
    return ["```python", shown, "```", ""]


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
