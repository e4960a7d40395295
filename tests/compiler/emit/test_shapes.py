"""Equal inline objects become one class: where it is, and that modules can import each other's."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubewright.config import Package, PathSource
from kubewright.pipeline import build

ROOT = Path(__file__).parents[3]


def record(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields}


LEAF = record(host={"type": "string"}, port={"type": "integer"})
PART = record(reads=LEAF, writes=LEAF)


def crd(**versions: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "cups.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "cups", "singular": "cup", "kind": "Cup", "listKind": "CupList"},
            "versions": [
                {
                    "name": name,
                    "served": True,
                    "storage": name == "v1",
                    "schema": {"openAPIV3Schema": record(spec=spec)},
                }
                for name, spec in versions.items()
            ],
        },
    }


def test_versions_that_share_shapes_can_be_imported(tmp_path: Path) -> None:
    """The older version has the part on top, the newer one further down: all of it is at home in the newer one."""
    source = tmp_path / "cups.yaml"
    source.write_text(
        yaml.safe_dump(crd(v1=record(deep=record(deeper=record(part=PART))), v1beta1=record(part=PART)))
    )
    built = build(Package(name="cups_api", sources=(PathSource(source),)), tmp_path / "cups_api")
    assert [str(item) for item in built.diagnostics if item.severity.value == "error"] == []
    for path, content in built.tree.files.items():
        target = tmp_path / "cups_api" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    assert b"example_v1beta1" not in built.tree.files["example_v1/models.py"]
    for module in ("example_v1", "example_v1beta1"):
        program = f"from cups_api.{module}.models import Cup; Cup.__doc__"
        path = [str(tmp_path), str(ROOT / "generator"), str(ROOT / "generated")]
        code = f"import sys; sys.path[:0] = {path!r}; {program}"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


BRANCH = record(
    leaf=record(host={"type": "string"}), tips={"type": "array", "items": record(tip={"type": "integer"})}
)


def build_named(tmp_path: Path, names: dict[str, str], **versions: Any) -> Any:
    source = tmp_path / "cups.yaml"
    source.write_text(yaml.safe_dump(crd(**versions)))
    package = Package(name="cups_api", sources=(PathSource(source),), names=tuple(names.items()))
    return build(package, tmp_path / "cups_api")


def classes_of(built: Any, module: str) -> set[str]:
    text = built.tree.files[f"{module}/models.py"].decode()
    return {line.split()[1].partition("(")[0] for line in text.splitlines() if line.startswith("class ")}


def test_a_nested_type_is_called_what_the_configuration_says(tmp_path: Path) -> None:
    """In every version, by itself and through lists; what is inside is called after it."""
    names = {"Cup.spec.twig.branch": "Branch", "Cup.spec.twig.branch.tips": "Tip"}
    spec = record(twig=record(branch=BRANCH))
    built = build_named(
        tmp_path, names, v1=spec, v1beta1=record(twig=record(branch=BRANCH, more={"type": "string"}))
    )
    assert not built.diagnostics.has_errors, [*built.diagnostics]
    assert {"Branch", "BranchLeaf", "Tip", "CupSpecTwig"} <= classes_of(built, "example_v1")
    shared = build_named(tmp_path, names, v1=record(twig=record(branch=BRANCH), other=record(shoot=BRANCH)))
    assert {"Branch", "Tip"} <= classes_of(shared, "example_v1")
    plain = build_named(tmp_path, {}, v1=spec)
    assert {"CupSpecTwigBranch", "CupSpecTwigBranchLeaf", "CupSpecTwigBranchTip"} <= classes_of(
        plain, "example_v1"
    )


def test_names_of_what_is_used_once_stay_when_another_kind_of_place_is_added(tmp_path: Path) -> None:
    other = record(branch=record(length={"type": "integer"}))
    before = classes_of(build_named(tmp_path, {}, v1=record(twig=record(branch=BRANCH))), "example_v1")
    after = classes_of(
        build_named(tmp_path, {}, v1=record(twig=record(branch=BRANCH), stem=other)), "example_v1"
    )
    assert before < after


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ({"Mug.spec": "Spec"}, "there is no Mug"),
        ({"Cup.spec.stalk": "Stalk"}, "there is no field stalk"),
        ({"Cup.spec.twig.branch.leaf.host": "Host"}, "this is no object"),
        ({"Cup.spec.twig": "Cup"}, "has a type of this name"),
        ({"Cup.spec.twig": "One", "Cup.spec.twig.branch": "One"}, "has a type of this name"),
        ({"Cup.spec.twig.branch": "One", "Cup.spec.same": "Two"}, "that is to be One"),
    ],
)
def test_names_that_cannot_be_used_are_refused(names: dict[str, str], said: str, tmp_path: Path) -> None:
    built = build_named(tmp_path, names, v1=record(twig=record(branch=BRANCH), same=BRANCH))
    (fault,) = [item for item in built.diagnostics if item.severity.value == "error"]
    assert fault.code == "K401" and said in fault.message


def needing(required: str, **fields: Any) -> dict[str, Any]:
    return {**record(**fields), "required": required.split()}


TEXT, MOMENT = {"type": "string"}, {"type": "string", "format": "date-time"}
WHOLE = {"type": "integer", "format": "int32"}
COUNT = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
PORT = {"name": TEXT, "port": WHOLE, "protocol": TEXT, "appProtocol": TEXT}
CONDITION = {"type": TEXT, "status": TEXT, "reason": TEXT, "message": TEXT, "lastTransitionTime": MOMENT}


@pytest.mark.parametrize(
    ("word", "shape", "wanted"),
    [
        (
            "conditions",
            needing(
                "type status reason message lastTransitionTime",
                **CONDITION,
                observedGeneration={"type": "integer", "format": "int64"},
            ),
            "meta_v1.Condition",
        ),
        ("conditions", needing("type status", **CONDITION), "CupSpecConditions"),
        ("secretRef", record(name=TEXT, namespace=TEXT), "core_v1.SecretReference"),
        ("secretRef", needing("name", name=TEXT, namespace=TEXT), "CupSpecSecretRef"),
        ("secretRef", record(name={**TEXT, "nullable": True}, namespace=TEXT), "CupSpecSecretRef"),
        (
            "secretKeyRef",
            needing("key", key=TEXT, name=TEXT, optional={"type": "boolean"}),
            "core_v1.SecretKeySelector",
        ),
        ("from", needing("key", key=TEXT, name=TEXT, optional={"type": "boolean"}), "CupSpecFrom"),
        ("plainPort", needing("port", **PORT), "CupSpecPlainPort"),
        ("endpoint_port", needing("port", **PORT), "core_v1.EndpointPort"),
        ("rollingUpdate", record(partition=WHOLE, maxUnavailable=COUNT), "CupSpecRollingUpdate"),
    ],
)
def test_a_copy_of_a_built_in_type_is_one_where_it_asks_for_the_same(
    word: str, shape: dict[str, Any], wanted: str, tmp_path: Path
) -> None:
    built = build_named(tmp_path, {}, v1=record(**{word: shape}))
    text = built.tree.files["example_v1/models.py"].decode()
    begins = (f"    {word}: ", "    secret_", "    from_: ", "    rolling_", "    plain_")
    [line] = [line for line in text.split("\n") if line.startswith(begins)]
    assert re.search(rf": (\w*{wanted}) \| None", line), line


def test_a_constraint_that_is_null_says_nothing(tmp_path: Path) -> None:
    spec = record(a={"type": "string", "anyOf": None, "pattern": None, "maxLength": None})
    assert not build_named(tmp_path, {}, v1=spec).diagnostics.has_errors
