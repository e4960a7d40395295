"""``kubewright cel eval`` computes an expression; ``kubewright cel check`` judges the rules of CRDs.

``eval`` prints the value as YAML (or JSON); an expression that does not compile, or fails, is an answer of no.
``check`` prints a table of every rule with its type, its estimated cost and the limit, and what kube-apiserver
would refuse.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apimachinery.cel.environment import PER_CALL_LIMIT, Environment
from apimachinery.cel.schemas.crd import check_schema
from apimachinery.cel.schemas.rule_checks import RULE_COST_LIMIT, rule_costs
from apimachinery.cel.schemas.schema_types import SchemaTypes
from apimachinery.cel.schemas.schema_values import converter
from apimachinery.cel.values import types as t
from apimachinery.cel.values.errors import CelError
from apimachinery.cel.values.values import ABSENT, Optional, TypeValue, type_name
from kubewright.diagnostics import Diagnostics, escaped, printable
from kubewright.source.text import read_documents
from kubewright.tools.inputs.crds import read_crds
from kubewright.tools.outputs.reporting import json_text

OK, REFUSED, MISUSED = 0, 1, 2


def run(options: argparse.Namespace) -> int:
    """Run one of them; returns the exit code."""
    try:
        environment = Environment.kubernetes(options.kubernetes)
    except ValueError:
        return _complain(f"--kubernetes {options.kubernetes}: not a version such as 1.36", MISUSED)
    try:
        if options.action == "eval":
            return _evaluate(options, environment)
        return _check(options)
    except _Unusable as error:
        return _complain(str(error), MISUSED)


class _Unusable(Exception):
    """The command cannot go on with what it was given."""


def _complain(message: str, code: int) -> int:
    print(f"kubewright cel: {escaped(message)}", file=sys.stderr)
    return code


def _documents(name: str) -> list[Any]:
    diagnostics = Diagnostics()
    found = read_documents(Path(name), diagnostics)
    if diagnostics.has_errors:
        raise _Unusable("\n".join(map(str, diagnostics)))
    return [document.value for document in found]


def _only(name: str) -> Any:
    documents = _documents(name)
    if len(documents) != 1:
        raise _Unusable(f"{name}: holds {len(documents)} documents, one is wanted")
    return documents[0]


def _schemas(document: Any, name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(version, schema) of a CRD, or of a bare schema with an empty version."""
    if not isinstance(document, Mapping):
        raise _Unusable(f"{name}: neither a CustomResourceDefinition nor a schema")
    if document.get("kind") != "CustomResourceDefinition":
        yield "", document.get("openAPIV3Schema", document)
        return
    spec = document.get("spec")
    versions = spec.get("versions") if isinstance(spec, Mapping) else None
    for version in versions if isinstance(versions, list) else ():
        holder = version.get("schema") if isinstance(version, Mapping) else None
        schema = holder.get("openAPIV3Schema") if isinstance(holder, Mapping) else None
        if isinstance(schema, Mapping):
            yield str(version.get("name")), schema


# eval


def _evaluate(options: argparse.Namespace, environment: Environment) -> int:
    variables: dict[str, Any] = {}
    types: dict[str, t.Type] = {}
    provider = None
    convert = None
    if options.schema:
        schema = _one_schema(options)
        declared = SchemaTypes(schema, is_root=True)
        if declared.root is None:
            raise _Unusable(f"{options.schema}: the schema has no type that expressions may see")
        provider, convert = declared, converter(schema, True)
        types["self"] = types["oldSelf"] = declared.root.type
    for name, file in (("self", options.self_file), ("oldSelf", options.old_self_file)):
        if file:
            value = _only(file)
            variables[name] = convert(value) if convert else value
            types.setdefault(name, t.DYN)
    for pair in options.var:
        name, equals, text = pair.partition("=")
        if not equals:
            raise _Unusable(f"--var {pair}: not NAME=JSON")
        try:
            variables[name] = json.loads(text)
        except (ValueError, RecursionError):
            raise _Unusable(f"--var {name}: not JSON: {text}") from None
        types[name] = t.DYN
    try:
        program = environment.extend(variables=types, provider=provider).compile(options.expression)
    except CelError as error:
        print(escaped(str(error)), file=sys.stderr)
        return REFUSED
    outcome = program.run(variables)
    if options.cost:
        print(f"cost: {outcome.cost} of {PER_CALL_LIMIT}", file=sys.stderr)
    if outcome.error is not None:
        print(f"ERROR: {escaped(str(outcome.error))}", file=sys.stderr)
        return REFUSED
    plain = plain_value(outcome.value)
    if options.format == "json":
        print(
            json.dumps(
                {"type": str(program.result_type), "value": plain, "cost": outcome.cost}, ensure_ascii=False
            )
        )
    else:
        print(plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False))
    return OK


def _one_schema(options: argparse.Namespace) -> Mapping[str, Any]:
    found = [pair for document in _documents(options.schema) for pair in _schemas(document, options.schema)]
    if options.api_version:
        found = [pair for pair in found if pair[0] == options.api_version]
    if not found:
        raise _Unusable(
            f"{options.schema}: no schema"
            + (f" of version {options.api_version}" if options.api_version else "")
        )
    if len(found) > 1:
        names = ", ".join(name for name, _ in found)
        raise _Unusable(f"{options.schema}: several versions ({names}); choose one with --api-version")
    return found[0][1]


def plain_value(value: Any) -> Any:
    """A CEL value as JSON: what JSON lacks becomes text."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if value is None or isinstance(value, (bool, float, str)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, bytes):
        import base64

        return base64.b64encode(value).decode()
    if isinstance(value, list):
        return [plain_value(item) for item in value]
    if isinstance(value, dict):
        return {str(plain_value(key)): plain_value(item) for key, item in value.items()}
    if isinstance(value, Optional):
        return None if value is ABSENT else plain_value(value.value)
    if isinstance(value, TypeValue):
        return value.name
    text = str(value)
    return f"<{type_name(value)}>" if text.startswith("<") else text


# check

_WIDTH = 100
_CELL = 24


@dataclass(frozen=True)
class _Row:
    file: str
    version: str
    path: str
    rule: str
    type: str
    cost: int


def _check(options: argparse.Namespace) -> int:
    rows: list[_Row] = []
    faults: list[tuple[str, str, str]] = []
    for name, document in _given(options.files):
        for version, schema in _schemas(document, name):
            costs = rule_costs(schema, Environment.kubernetes(options.kubernetes))
            rows += [_Row(name, version, c.path, c.rule, c.type, c.cost) for c in costs]
            prefix = "openAPIV3Schema"
            if version:
                prefix = f"spec.versions[name={version}].schema.{prefix}"
            found = check_schema(schema, field=prefix, version=options.kubernetes)
            faults += [(name, prefix + fault.path, fault.message) for fault in found]
    if options.format == "json":
        report = {
            "limit": RULE_COST_LIMIT,
            "rules": [row.__dict__ for row in rows],
            "faults": [{"file": f, "field": p, "message": m} for f, p, m in faults],
        }
        sys.stdout.write(json_text(report))
    else:
        if rows:
            _print_rows(rows)
        for name, path, message in faults:
            print(printable(f"{name}: {path}: {message}"), file=sys.stderr)
        print(f"{len(rows)} rules, {len(faults)} faults")
    return REFUSED if faults else OK


def _given(paths: list[str]) -> Iterator[tuple[str, Any]]:
    """(file, document) of all files named, and of the CRDs in folders."""
    for name in paths:
        if not Path(name).is_dir():
            yield from ((name, document) for document in _documents(name))
            continue
        diagnostics = Diagnostics()
        defined = read_crds([Path(name)], diagnostics)
        if diagnostics.has_errors:
            raise _Unusable("\n".join(map(str, diagnostics)))
        yield from ((crd.file, crd.value) for crd in defined)


def _print_rows(rows: list[_Row]) -> None:
    """Two lines a rule, at most ``_WIDTH`` wide: what it costs and where it is, then the rule."""
    head = ["COST", "OF LIMIT", "SELF", "VERSION"]
    table = [head]
    for row in rows:
        share = row.cost * 100 / RULE_COST_LIMIT
        shown = "unbounded" if row.cost >= 2**63 else f"{row.cost:,}"
        percent = ">100x" if share > 10_000 else f"{share:.1f}%"
        kind = row.type if len(row.type) <= _CELL else row.type[: _CELL - 1] + "…"
        table.append([printable(cell) for cell in (shown, percent, kind, row.version or "-")])
    widths = [max(len(line[i]) for line in table) for i in range(len(head))]
    file = ""
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in table]
    print(f"{lines[0]}  PATH")
    for row, cells in zip(rows, lines[1:], strict=True):
        if row.file != file:
            file = row.file
            print(f"{printable(file)}:")
        path, room = printable(row.path or "."), _WIDTH - len(cells) - 2
        print(f"{cells}  {path if len(path) <= room else '…' + path[1 - room :]}")
        rule = printable(" ".join(row.rule.split()))
        print(f"    {rule if len(rule) <= _WIDTH - 4 else rule[: _WIDTH - 5] + '…'}")
