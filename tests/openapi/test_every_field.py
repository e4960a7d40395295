"""Models held against the schemas of a document: null, fields of one side, discriminators."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.compiler.emit.test_operations import DOCUMENT, TEXT, body, operation, ref
from tests.openapi.drawing import Described
from tests.openapi.every_field import check_models

from kubewright.cli import main

CARD = {"type": "object", "required": ["by"], "properties": {"by": TEXT, "number": TEXT}}
UNION = {
    "oneOf": [ref("Card"), ref("Cash")],
    "discriminator": {"propertyName": "by", "mapping": {"card": "Card", "cash": "#/components/schemas/Cash"}},
}
SPEC: Any = json.loads(json.dumps(DOCUMENT))
SPEC["components"]["schemas"] |= {"Card": CARD, "Cash": CARD, "Payment": UNION}
SPEC["paths"]["/payments"] = {"post": operation("pay", ref("Payment"), **body(ref("Payment")))}


def test_models_say_what_schemas_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "spec.json").write_text(json.dumps(SPEC))
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    arguments = [
        "generate",
        str(tmp_path / "spec.json"),
        "--package",
        "fields_api",
        "--output",
        str(tmp_path),
    ]
    assert main([*arguments, "-q", "-j1"]) == 0
    models = importlib.import_module("fields_api.models.models")
    counts, wrong = check_models(Described(SPEC), models)
    assert (dict(counts), wrong) == ({"null": 1, "readOnly": 1, "discriminator": 2}, [])

    class Account(msgspec.Struct):
        id: int
        user: str
        password: str
        note: str | None = None

    class Card(msgspec.Struct):
        by: str

    monkeypatch.setattr(models, "Account", Account)
    monkeypatch.setattr(models, "Card", Card)
    assert check_models(Described(SPEC), models)[1] == [
        "Account.id is readOnly, and asked of who sends",
        "Account.note: null is not sent",
        "Card.by: 'card' is asked for",
    ]
