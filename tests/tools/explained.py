"""``kubewright explain`` and ``kubectl explain`` side by side, for every field of a release.

    python -m tests.tools.explained [RELEASE] [NUMBER]

kubectl reads discovery and OpenAPI of a server on loopback that is made of the release's definitions. A definition is
looked at once, wherever it is used; its page shows all its fields. Wrapping aside both must print the same.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Protocol

from kubewright import cli
from kubewright.config import specs_folder
from kubewright.diagnostics import Diagnostics
from kubewright.source.catalog import read_catalog
from kubewright.source.kubernetes_validate import NEWEST, described
from kubewright.tools.explain import _properties, _resolved

GVK = "x-kubernetes-group-version-kind"
KUBECTL = shutil.which("kubectl")
Json = dict[str, Any]


class Answering(Protocol):
    """What has documents at paths."""

    def answer(self, path: str) -> Json | None: ...


class World:
    """A release: its definitions, as OpenAPI v3 and discovery show them."""

    def __init__(self, release: str) -> None:
        self.definitions = described(release)
        of_kind = {
            (gvk["group"], gvk["version"], gvk["kind"]): name
            for name, schema in self.definitions.items()
            for gvk in schema.get(GVK, ())
        }
        self.of_kind = of_kind
        self.resources = read_catalog(
            specs_folder() / "kubernetes", release, of_kind, Diagnostics()
        ).resources
        self.schemas = {name: _in_v3(copy.deepcopy(schema)) for name, schema in self.definitions.items()}

    def answer(self, path: str) -> Json | None:
        """What a server has at ``path``."""
        path = path.partition("?")[0].strip("/")
        versions = sorted({(r.group, r.version) for r in self.resources})
        if path == "api":
            return {"kind": "APIVersions", "versions": ["v1"]}
        if path == "apis":
            groups = sorted({group for group, _ in versions if group})
            return {
                "kind": "APIGroupList",
                "apiVersion": "v1",
                "groups": [_group(g, versions) for g in groups],
            }
        if path == "openapi/v3":
            places = [_place(*each) for each in versions]
            return {"paths": {place: {"serverRelativeURL": f"/openapi/v3/{place}"} for place in places}}
        if path.startswith("openapi/v3/"):
            wanted = path.removeprefix("openapi/v3/")
            info = {"title": "Kubernetes", "version": "1"}
            schemas = {"schemas": self._schemas_of(wanted)}
            return {"openapi": "3.0.0", "info": info, "paths": self._paths(wanted), "components": schemas}
        for group, version in versions:
            if _place(group, version) == path:
                return self._resource_list(group, version)
        return None

    def _schemas_of(self, place: str) -> Json:
        """The schemas, with the kinds of one group-version alone, as a server's documents have them."""
        found = {}
        for name, schema in self.schemas.items():
            kinds = [k for k in schema.get(GVK, ()) if _place(k["group"], k["version"]) == place]
            found[name] = {**schema, GVK: kinds} if GVK in schema else schema
        return found

    def _paths(self, place: str) -> Json:
        """The lists of a group-version's resources: kubectl finds kinds by their paths."""
        found = {}
        for each in self.resources:
            if _place(each.group, each.version) == place:
                kind = {"group": each.group, "version": each.version, "kind": each.kind}
                inner = "namespaces/{namespace}/" if each.namespaced else ""
                operation = {GVK: kind, "x-kubernetes-action": "list", "responses": {}}
                found[f"/{place}/{inner}{each.plural}"] = {"get": operation}
        return found

    def _resource_list(self, group: str, version: str) -> Json:
        own = [r for r in self.resources if (r.group, r.version) == (group, version)]
        return {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": f"{group}/{version}".strip("/"),
            "resources": [
                {"name": r.plural, "singularName": r.singular, "kind": r.kind, "namespaced": r.namespaced,
                 "shortNames": [*r.short_names], "verbs": ["get", "list"]}
                for r in own
            ],
        }  # fmt: skip

    def pages(self) -> Iterator[tuple[str, str]]:
        """API version and path of one place where each definition with fields is used, kinds first."""
        seen: set[int] = set()
        waiting: list[tuple[str, str, Json]] = []
        for resource in self.resources:
            name = self.of_kind.get((resource.group, resource.version, resource.kind))
            if name is not None:
                api_version = f"{resource.group}/{resource.version}".strip("/")
                waiting.append((api_version, resource.plural, self.definitions[name]))
        for api_version, path, schema in waiting:
            properties = _properties(_resolved(schema, self.definitions), self.definitions)
            if not properties or id(properties) in seen:
                continue
            seen.add(id(properties))
            yield api_version, path
            waiting += [(api_version, f"{path}.{name}", inner) for name, inner in properties.items()]


def _in_v3(value: Any) -> Any:
    """A schema as OpenAPI v3 writes it."""
    if isinstance(value, list):
        return [_in_v3(each) for each in value]
    if not isinstance(value, dict):
        return value
    found = {key: _in_v3(each) for key, each in value.items()}
    if isinstance(found.get("type"), list):
        found["type"] = next(each for each in found["type"] if each != "null")
    if isinstance(reference := found.get("$ref"), str):
        del found["$ref"]
        inner = {"$ref": f"#/components/schemas/{reference.rpartition('/')[2]}"}
        return {**found, "allOf": [inner]} if found else inner
    return found


def _place(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _group(name: str, versions: list[tuple[str, str]]) -> Json:
    own = [{"groupVersion": f"{name}/{v}", "version": v} for group, v in versions if group == name]
    return {"name": name, "versions": own, "preferredVersion": own[0]}


@contextlib.contextmanager
def served(world: Answering) -> Iterator[str]:
    """The address of a server that answers as ``world``."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            found = world.answer(self.path)
            content = json.dumps(found or {"kind": "Status", "apiVersion": "v1", "code": 404}).encode()
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def ours(release: str, api_version: str, path: str) -> str:
    """What ``kubewright explain`` prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        cli.main(["explain", path, "--api-version", api_version, "--kubernetes", release])
    return out.getvalue()


def theirs(address: str, folder: str, api_version: str, path: str) -> str:
    """What ``kubectl explain`` prints."""
    assert KUBECTL is not None
    environment = {"PATH": os.environ["PATH"], "HOME": folder, "KUBECONFIG": os.devnull}
    command = [KUBECTL, "--server", address, "explain", path, "--api-version", api_version]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    return done.stdout or done.stderr


def words(page: str) -> list[str]:
    """A page, wrapping aside."""
    return page.split()


def differences(release: str, limit: int = 0) -> Iterator[tuple[str, str, str]]:
    """Path, our page and kubectl's where they differ. ``limit`` takes so many pages, evenly."""
    world = World(release)
    pages = [*world.pages()]
    if limit:
        pages = pages[:: max(1, len(pages) // limit)]
    with served(world) as address, tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        asked = pool.map(lambda each: theirs(address, folder, *each), pages)
        for (api_version, path), page in zip(pages, asked, strict=True):
            own = ours(release, api_version, path)
            if words(own) != words(page):
                yield f"{api_version} {path}", own, page
    print(f"{release}: {len(pages)} pages of {sum(len(v.get('properties', ())) for v in world.definitions.values())} "
          "fields", file=sys.stderr)  # fmt: skip


def main(arguments: list[str]) -> int:
    """Prints the first difference of each page that differs."""
    release = arguments[0] if arguments else NEWEST
    count = 0
    for path, own, page in differences(release, int(arguments[1]) if len(arguments) > 1 else 0):
        count += 1
        ours_, theirs_ = words(own), words(page)
        pairs = enumerate(zip(ours_, theirs_, strict=False))
        at = next((at for at, (one, other) in pairs if one != other), min(len(ours_), len(theirs_)))
        print(f"{path}\n  ours:    {ours_[at : at + 12]}\n  kubectl: {theirs_[at : at + 12]}")
        if os.environ.get("SHOW"):
            Path(os.environ["SHOW"]).write_text(own + "=" * 80 + "\n" + page)
    print(f"{count} differ")
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
