"""The simulated nodes of ``serve``: how many, and of what template."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apimachinery.server.catalog.options import OptionError

if TYPE_CHECKING:
    from apimachinery.server.node.behaviour import NodeBehaviour

MOST_NODES = 1000


def behaviour_of(options: argparse.Namespace, controllers: frozenset[str]) -> NodeBehaviour | None:
    """How the nodes behave; None where none were asked for. Raises OptionError."""
    count, path = options.nodes, options.node_template
    if count is None and path is None:
        return None
    from apimachinery.server.node.behaviour import NodeBehaviour
    from apimachinery.server.node.shapes import TemplateError, shapes

    named = "--nodes" if count is not None else "--node-template"
    if "node" not in controllers:
        raise OptionError(f"{named}: there are nodes with --controllers all,node only")
    if count is not None and not 1 <= count <= MOST_NODES:
        raise OptionError(f"--nodes: {count} is none of 1 to {MOST_NODES}")
    made = NodeBehaviour(nodes=count or 1, template=None if path is None else _template(path))
    try:
        shapes(made.name, 1, made.template)
    except TemplateError as fault:
        raise OptionError(f"--node-template: {path}: {fault}") from None
    return made


def _template(path: Path) -> dict[str, Any]:
    import yaml

    try:
        found = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError) as fault:
        raise OptionError(f"--node-template: {path} cannot be read: {fault}") from None
    except yaml.YAMLError as fault:
        raise OptionError(f"--node-template: {path} is no YAML: {' '.join(str(fault).split())}") from None
    if not isinstance(found, dict):
        raise OptionError(f"--node-template: {path} holds no Node")
    return found
