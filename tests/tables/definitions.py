"""CustomResourceDefinitions as they are created and updated."""

from __future__ import annotations

from collections.abc import Iterator

from apimachinery.crd.check import check_crd
from apimachinery.crd.defaults import default_crd
from apimachinery.wire.json import decode, encode

from . import cel_rules, faults, schemas
from .agreement import Answer, Line, Suite


def definition(line: Line) -> Iterator[Answer]:
    """``old`` for an update."""
    obj, old = (decode(encode(line.get(each))) for each in ("obj", "old"))
    default_crd(obj)
    yield from faults.compared(line["errs"], check_crd(obj, old))


SUITE = Suite(
    "crd",
    ("crd-*.jsonl",),
    {
        "crd": definition,
        "crdupdate": definition,
        "celcompile": cel_rules.compiled,
        "celvalidate": cel_rules.run,
        **schemas.RUNNERS,
    },
)
