"""TypeScript: what is generated compiles strictly, and the client does what it says against a server."""

from __future__ import annotations

import json
import re
import shutil
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubewright.config import Package, PathSource
from kubewright.emit.code.layout import MAX_NAME, lay_out
from kubewright.emit.typescript.text import comment, constant_name, header, literal, property_name
from kubewright.emit.typescript.types import NAMING
from kubewright.output import Changes, Tree
from kubewright.pipeline import build
from kubewright.testing import ApiServer
from kubewright.testing.ports import free_ports
from tests.compiler.languages.drawn import PUBLIC, Drawing, public_crds, schemas
from tests.compiler.languages.node_tools import (
    HERE,
    MODULES,
    compile_strictly,
    needs_eslint,
    needs_tsc,
    node,
    project,
)

PARCELS = Path(__file__).parent / "spec" / "parcels.yaml"
REFERENCE = Path(__file__).parents[4] / "shared/reference/reference.sh"
ADMIN = "admin-token"


def generated(folder: Path, spec: Path, name: str) -> Tree:
    """The package called ``name``, written below ``folder``."""
    package = Package(name=name, sources=(PathSource(spec, spec.name),), language="typescript")
    built = build(package, folder / name)
    assert not built.diagnostics.has_errors, [*map(str, built.diagnostics)]
    built.tree.write(Changes(added=tuple(built.tree.files)))
    return built.tree


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("typescript")
    src = project(folder)
    generated(src, PARCELS, "parcels")
    shutil.copy(HERE / "client.test.ts", src)
    assert compile_strictly(folder) == []
    return folder


@needs_tsc
def test_the_client_against_a_server(compiled: Path) -> None:
    with ApiServer(crds=[PARCELS]) as server:
        access = yaml.safe_load(Path(server.kubeconfig).read_text())
        address = access["clusters"][0]["cluster"]["server"]
        token = access["users"][0]["user"]["token"]
        done = node(compiled, "dist/client.test.js", SERVER=address, TOKEN=token)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("ok ") == 8


@needs_tsc
@pytest.mark.thorough
@pytest.mark.shared
@pytest.mark.skipif(not REFERENCE.is_file(), reason="needs the kube-apiserver of ../shared/reference")
def test_the_client_against_kube_apiserver(compiled: Path, tmp_path: Path) -> None:
    [port] = free_ports(1)
    folder = tmp_path / "reference"
    try:
        subprocess.run([REFERENCE, "start", folder, str(port)], check=True, timeout=200, capture_output=True)
        address = f"https://127.0.0.1:{port}"
        crds, parcels = (
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            "/apis/post.example.com/v1/parcels",
        )
        assert answered(address + crds, json.dumps(yaml.safe_load(PARCELS.read_text()))) == 201
        for _ in range(60):
            if answered(address + parcels) == 200:
                break
            time.sleep(0.5)
        trusting = {"NODE_TLS_REJECT_UNAUTHORIZED": "0", "NODE_NO_WARNINGS": "1"}
        done = node(compiled, "dist/client.test.js", SERVER=address, TOKEN=ADMIN, **trusting)
    finally:
        subprocess.run([REFERENCE, "stop", folder], check=False, timeout=60, capture_output=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("ok ") == 8


def answered(url: str, body: str | None = None) -> int:
    """The code that kube-apiserver answers an administrator with."""
    head = {"Authorization": f"Bearer {ADMIN}", "Content-Type": "application/json"}
    request = urllib.request.Request(url, data=None if body is None else body.encode(), headers=head)
    try:
        with urllib.request.urlopen(request, context=ssl._create_unverified_context(), timeout=20) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code


@needs_eslint
@pytest.mark.thorough
def test_a_linter_finds_nothing(compiled: Path) -> None:
    done = node(compiled, MODULES / "eslint" / "bin" / "eslint.js", "src")
    assert (done.returncode, done.stdout) == (0, "")


WRONG = (
    'await client.get(widgets, "a")',
    'const p: Parcel = { ...parcel, kind: "Box" }',
    'const c: Parcel["spec"]["carrier"] = "Plane"',
    'await client.scale(unscaled, "a", 1)',
    "await client.create(parcels, { ...parcel, spec: { weight: 1, to: { street: 1 } } })",
)


@needs_tsc
@pytest.mark.thorough
def test_the_compiler_refuses_what_a_server_would(tmp_path: Path) -> None:
    src = project(tmp_path)
    generated(src, PARCELS, "parcels")
    (src / "wrong.ts").write_text(
        'import { Client, post_v1 } from "./parcels/index.js";\n'
        'import type { Can, Resource } from "./parcels/index.js";\n'
        "type Parcel = post_v1.Parcel;\nconst { parcels } = post_v1;\n"
        'const client = new Client({ server: "http://x" });\n'
        "declare const parcel: Parcel;\n"
        'declare const widgets: Resource<Parcel> & Can<"list">;\n'
        'declare const unscaled: Resource<Parcel> & Can<"get">;\n'
        + "".join(
            f"export async function f{i}(): Promise<void> {{ {text}; }}\n" for i, text in enumerate(WRONG)
        )
    )
    said = "\n".join(compile_strictly(tmp_path, "--noUnusedLocals", "false"))
    for number in range(len(WRONG)):
        assert re.search(rf"wrong\.ts\({9 + number},\d+\): error TS\d+: .*is not assignable to", said), said


def sampled(crds: list[Any], count: int) -> list[tuple[str, str, Any]]:
    found = []
    for crd in crds:
        for api_version, kind, schema in schemas(crd):
            drawing = Drawing(f"{api_version} {kind}")
            found += [(api_version, kind, drawing.object(api_version, kind, schema)) for _ in range(count)]
    return found


@needs_tsc
@pytest.mark.thorough
@pytest.mark.skipif(not PUBLIC.is_dir(), reason="no public CRDs in ../shared/data")
def test_objects_of_public_crds_are_values_of_their_types(tmp_path: Path) -> None:
    src = project(tmp_path)
    specs = tmp_path / "specs"
    specs.mkdir()
    crds = public_crds()
    for number, crd in enumerate(crds):
        (specs / f"{number}.yaml").write_text(yaml.safe_dump(crd))
    generated(src, specs, "apis")
    package = Package(name="apis", sources=(PathSource(specs, "specs"),), language="typescript")
    from kubewright.diagnostics import Diagnostics
    from kubewright.ir.shapes import fold
    from kubewright.pipeline import read_api

    layout = lay_out(fold(read_api(package, Diagnostics())), naming=NAMING)
    assert max(len(entry.name) for plan in layout.modules for entry in plan.classes) <= MAX_NAME
    places = {entry.kind: (plan.name, entry.name) for plan in layout.modules for entry in plan.classes}
    lines = []
    for number, (api_version, kind, obj) in enumerate(sampled(crds, 7)):
        group, _, version = api_version.partition("/")
        module, name = places[group, version, kind]
        lines.append(f"export const o{number}: apis.{module}.{name} = {json.dumps(obj)};")
    assert len(lines) > 1000 or len(crds) < 100
    (src / "objects.ts").write_text(
        'import type * as apis from "./apis/index.js";\n' + "\n".join(lines) + "\n"
    )
    assert compile_strictly(tmp_path)[:20] == []


def test_text_is_a_literal_or_a_comment_and_nothing_else() -> None:
    assert literal('"; x(); "\u2028') == '"\\"; x(); \\"\\u2028"'
    assert comment("ends */ here @ts-ignore\n@deprecated \u202e") == [
        "/**", " * ends *\\/ here \\@ts-ignore", " * \\@deprecated \\u{202e}", " */",
    ]  # fmt: skip
    assert comment("  \n\n ") == []
    assert property_name("a-b") == '"a-b"' and property_name("class") == "class"
    assert header(("a\nimport x",)).splitlines()[0] == "// Generated by kubewright from a import x"
    taken = {"client"}
    assert [constant_name(name, taken) for name in ("clients", "client", "foo-bars", "2x", "delete", "delete")] == [
        "clients", "client2", "fooBars", "resource2x", "delete2", "delete3",
    ]  # fmt: skip
