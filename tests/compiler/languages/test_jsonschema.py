"""JSON Schemas: a validator's verdict is that of ``validate``, on what schemas can say."""

from __future__ import annotations

import copy
import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from apimachinery.schema.custom import compile_custom
from apimachinery.schema.validation.lists import list_faults
from kubewright.config import Package, PathSource
from kubewright.pipeline import build
from tests.compiler.languages.drawn import PUBLIC, Drawing, public_crds, schemas

needs_public = pytest.mark.skipif(not PUBLIC.is_dir(), reason="no public CRDs in ../shared/data")


def made(tmp_path: Path, *documents: Any) -> dict[str, Any]:
    for number, document in enumerate(documents):
        (tmp_path / f"{number}.yaml").write_text(yaml.safe_dump(document))
    package = Package(name="schemas", sources=(PathSource(tmp_path),), language="jsonschema")
    built = build(package, tmp_path / "out")
    assert not built.diagnostics.has_errors, [*map(str, built.diagnostics)]
    return {path: json.loads(content) for path, content in built.tree.files.items()}


def without_formats(schema: Any) -> Any:
    """In draft 7 a format is a note: validators may pass over it, and most editors do."""
    if isinstance(schema, list):
        return [without_formats(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: without_formats(item)
        for key, item in schema.items()
        if not (key == "format" and isinstance(item, str))
    }


class Judge:
    """What ``validate`` says by the schema alone: not of rules in CEL, of names, of keys of lists."""

    def __init__(self, schema: Any) -> None:
        self.schema = compile_custom(without_formats(schema))

    def faults(self, obj: Any) -> list[str]:
        work = copy.deepcopy(obj)
        broken = self.schema.decode_fault(work)
        if broken is not None:
            return [broken]
        faults = self.schema.prune(work)
        self.schema.default(work)
        faults += map(str, self.schema.schema_faults(work))
        faults += map(str, self.schema.embedded_faults(work))
        said = map(str, list_faults(self.schema.node, work))
        return faults + [text for text in said if "Duplicate value: {" not in text]


def disagreements(crd: Any, files: dict[str, Any], count: int, verdicts: Counter[bool]) -> list[str]:
    found = []
    for api_version, kind, schema in schemas(crd):
        group, _, version = api_version.partition("/")
        path = f"{group}/{kind.lower()}_{version}.json"
        validator = jsonschema.Draft7Validator(files[path])
        judge, drawing = Judge(schema), Drawing(path)
        for _ in range(count):
            drawn = drawing.object(api_version, kind, schema)
            for obj in (drawn, drawing.spoilt(drawn)):
                faults = judge.faults(obj)
                error = next(validator.iter_errors(obj), None)
                verdicts[not faults] += 1
                if (not faults) != (error is None):
                    shown = f"{error.json_path}: {error.message[:200]}" if error else "valid"
                    found.append(f"{path}: validate {faults[:2]}; schema: {shown}")
    return found


@cache
def _public() -> list[Any]:
    return public_crds()


@needs_public
def test_verdicts_on_public_crds(tmp_path: Path) -> None:
    check_verdicts(tmp_path, _public()[::40], 6)


@needs_public
@pytest.mark.thorough
def test_verdicts_on_all_public_crds(tmp_path: Path) -> None:
    check_verdicts(tmp_path, _public(), 40)


def test_a_required_value_of_any_type_is_not_null(tmp_path: Path) -> None:
    crd = yaml.safe_load((Path(__file__).parent / "spec" / "parcels.yaml").read_text())
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["required"] = ["anything"]
    validator = jsonschema.Draft7Validator(made(tmp_path, crd)["post.example.com/parcel_v1.json"])
    for anything, is_valid in (({}, True), (False, True), (None, False)):
        parcel = {"apiVersion": "post.example.com/v1", "kind": "Parcel", "spec": {"anything": anything}}
        assert validator.is_valid(parcel) == is_valid
        assert (not Judge(schema).faults(parcel)) == is_valid


def test_objects_inside_others_have_metadata(tmp_path: Path) -> None:
    parcels = yaml.safe_load((Path(__file__).parent / "spec" / "parcels.yaml").read_text())
    schema = made(tmp_path, parcels)["post.example.com/parcel_v1.json"]
    judge = Judge(parcels["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    for metadata, is_valid in (({"name": "a"}, True), ({"name": True}, False), ({"unheard": "x"}, False)):
        spec = {"weight": 1, "carrier": "Ship", "to": {"street": "x"}}
        template = {"apiVersion": "v1", "kind": "Box", "metadata": metadata, "any": 1}
        parcel = {
            "apiVersion": "post.example.com/v1",
            "kind": "Parcel",
            "metadata": {"name": "p"},
            "spec": {**spec, "template": template},
        }
        assert jsonschema.Draft7Validator(schema).is_valid(parcel) == is_valid
        assert (not judge.faults(parcel)) == is_valid


def check_verdicts(tmp_path: Path, crds: list[Any], count: int) -> None:
    files = made(tmp_path, *crds)
    for path, schema in files.items():
        jsonschema.Draft7Validator.check_schema(schema)
        assert (
            path == "all.json" or schema["additionalProperties"] is False or "x-kubernetes" not in str(schema)
        )
    verdicts: Counter[bool] = Counter()
    found = [line for crd in crds for line in disagreements(crd, files, count, verdicts)]
    print(f"{sum(verdicts.values())} objects, {verdicts[True]} valid, {len(found)} disagreements")
    assert found == []
    assert verdicts[True] > 10 < verdicts[False]
