"""The words of conversion rules, each there and back through ``kubewright convert``, by convert_cases.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.tools.command import kubewright

Json = Any
CASES = yaml.load((Path(__file__).parent / "convert_cases.yaml").read_text(), yaml.CSafeLoader)
GROUP = "example.com"


def schema(short: Json) -> Json:
    """``string``; ``[item]``; ``{'*': value}``; ``{field: schema}``."""
    if isinstance(short, str):
        return {"type": short}
    if isinstance(short, list):
        return {"type": "array", "items": schema(short[0])}
    if set(short) == {"*"}:
        return {"type": "object", "additionalProperties": schema(short["*"])}
    return {"type": "object", "properties": {name: schema(inner) for name, inner in short.items()}}


def definition(case: Json) -> Json:
    def version(name: str, spec: Json, storage: bool) -> Json:
        properties = {"spec": schema(spec)}
        return {
            "name": name,
            "served": True,
            "storage": storage,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
        }

    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {"kind": "Thing", "plural": "things"},
            "scope": "Namespaced",
            "versions": [version("v1beta1", case["spoke"], False), version("v1", case["hub"], True)],
        },
    }


def write(case: Json, folder: Path) -> tuple[str, ...]:
    (folder / "crd.yaml").write_text(yaml.safe_dump(definition(case)))
    rules = {"kind": "Thing", "hub": f"{GROUP}/v1", "spokes": {f"{GROUP}/v1beta1": case["rules"]}}
    (folder / "rules/conversions").mkdir(parents=True)
    (folder / "rules/conversions/thing.yaml").write_text(yaml.safe_dump(rules))
    return "--crds", str(folder / "crd.yaml"), "--rules", str(folder / "rules")


def thing(version: str, spec: Json) -> Json:
    return {
        "apiVersion": f"{GROUP}/{version}",
        "kind": "Thing",
        "metadata": {"name": "a"},
        "spec": spec,
    }


def convert(obj: Json, version: str, options: tuple[str, ...]) -> Json:
    code, out, err = kubewright(
        "convert", "-f", "-", "--output-version", f"{GROUP}/{version}", *options, stdin=yaml.safe_dump(obj)
    )
    assert code == 0, err
    return yaml.safe_load(out)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_words(case: Json, tmp_path: Path) -> None:
    options = write(case, tmp_path)
    if "refused" in case:
        code, _, err = kubewright("convert", "-f", "-", "--output-version", "v1", *options, stdin="{}")
        assert code == 2 and f"{case['refused']}: " in err, err
        return
    here = thing("v1beta1", case["here"])
    there = convert(here, "v1", options)
    assert there["spec"] == case["there"]
    assert convert(there, "v1beta1", options)["spec"] == case.get("back", case["here"])
    if "from_hub" in case:
        hub = thing("v1", case["from_hub"])
        spoke = convert(hub, "v1beta1", options)
        assert spoke["spec"] == case["to_spoke"]
        assert convert(spoke, "v1", options)["spec"] == case["from_hub"]


def test_a_function_of_your_own(tmp_path: Path) -> None:
    case = {
        "spoke": {"size": "string"},
        "hub": {"cores": "integer"},
        "rules": [{"call": "shop.sizes.cores", "spoke": ["spec.size"], "hub": ["spec.cores"]}],
    }
    options = write(case, tmp_path)
    modules = tmp_path / "modules/shop"
    modules.mkdir(parents=True)
    (modules / "sizes.py").write_text(
        "def cores_to_hub(obj):\n    obj['spec']['cores'] = len(obj['spec'].pop('size'))\n\n\n"
        "def cores_to_spoke(obj):\n    obj['spec']['size'] = 'x' * obj['spec'].pop('cores')\n"
    )
    here = thing("v1beta1", {"size": "xxx"})
    code, _, err = kubewright(
        "convert", "-f", "-", "--output-version", f"{GROUP}/v1", *options, stdin=yaml.safe_dump(here)
    )
    assert code == 2 and "K181" in err and "--modules" in err
    own = (*options, "--modules", str(modules.parent))
    there = convert(here, "v1", own)
    assert there["spec"] == {"cores": 3}
    assert convert(there, "v1beta1", own)["spec"] == {"size": "xxx"}


def test_what_arrives_is_held_against_its_schema(tmp_path: Path) -> None:
    case = {
        "spoke": {"name": "string"},
        "hub": {"title": "string"},
        "rules": [{"move": "spec.name", "to": "spec.title"}],
    }
    options = write(case, tmp_path)
    crd = definition(case)
    hub = crd["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    hub["properties"]["title"]["maxLength"] = 3
    (tmp_path / "crd.yaml").write_text(yaml.safe_dump(crd))
    for name, faults in (("abc", 0), ("abcd", 1)):
        obj = yaml.safe_dump(thing("v1beta1", {"name": name}))
        code, out, err = kubewright(
            "convert", "-f", "-", "--output-version", f"{GROUP}/v1", *options, stdin=obj
        )
        assert (code, err.count("refuses what arrives: spec.title: Too long")) == (faults, faults), err
        assert yaml.safe_load(out)["spec"] == {"title": name}
    obj = yaml.safe_dump({**thing("v1beta1", {"name": "abcd"}), "unknown": 1})  # not valid to begin with
    code, _, err = kubewright("convert", "-f", "-", "--output-version", f"{GROUP}/v1", *options, stdin=obj)
    assert (code, err) == (0, "")
