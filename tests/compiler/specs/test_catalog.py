"""The catalog of built-in resources against the definitions of every release it covers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from kubewright.diagnostics import Diagnostics
from kubewright.source.catalog import Gvk, SpecCatalog, read_catalog, release_number, version_priority  # type: ignore[attr-defined]

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "specs" / "kubernetes"
SCHEMAS = Path(kubernetes_validate.__file__).parent / "kubernetes-json-schema"
RECORDED = ROOT / ".." / "shared" / "data" / "kubernetes-1.36"
RELEASES = [f"1.{minor}" for minor in range(25, 38)]


def facts(name: str) -> Any:
    return yaml.load((FOLDER / name).read_text(), yaml.CSafeLoader)


@cache
def registered(release: str) -> dict[Gvk, str]:
    """GVK → name of the definition that registers it, as ``release`` has them."""
    path = SCHEMAS / f"v{release}.0-local" / "_definitions.json"
    definitions = json.loads(path.read_bytes())["$defs"]
    return {
        (gvk["group"], gvk["version"], gvk["kind"]): name
        for name, schema in definitions.items()
        for gvk in schema.get("x-kubernetes-group-version-kind", ())
    }


@cache
def catalog(release: str) -> SpecCatalog:
    diagnostics = Diagnostics()
    read = read_catalog(FOLDER, release, registered(release), diagnostics)
    assert [str(d) for d in diagnostics] == []
    return read


def recorded(name: str) -> Any:
    path = RECORDED / name
    if not path.exists():
        pytest.skip("the ../shared folder of recordings is absent")
    return json.loads(path.read_bytes())


def not_resources() -> Iterator[tuple[str, str]]:
    for entry in facts("not-resources.yaml")["kinds"]:
        yield entry["kind"], entry["reason"]


def spelled(gvk: Gvk) -> str:
    return "/".join(part for part in gvk if part)


def matches(gvk: Gvk, pattern: str) -> bool:
    group, version, kind = gvk
    return spelled(gvk) == pattern or fnmatchcase(f"{group or '-'}/{version}/{kind}", pattern)


def test_releases_are_those_tested() -> None:
    releases = facts("releases.yaml")
    assert (releases["first"], releases["newest"]) == (RELEASES[0], RELEASES[-1])


@pytest.mark.parametrize("release", RELEASES)
def test_every_registered_kind_is_a_resource_or_says_why_not(release: str) -> None:
    served = {(r.group, r.version, r.kind) for r in catalog(release).resources}
    lists = {(r.group, r.version, r.list_kind) for r in catalog(release).resources if r.list_kind}
    patterns = [kind for kind, _ in not_resources()]
    unexplained = [
        spelled(gvk)
        for gvk in sorted(registered(release).keys() - served - lists)
        if not any(
            fnmatchcase(f"{gvk[0] or '-'}/{gvk[1]}/{gvk[2]}", p) or spelled(gvk) == p for p in patterns
        )
    ]
    assert unexplained == []


def test_every_reason_applies() -> None:
    everything = {gvk for release in RELEASES for gvk in registered(release)}
    for pattern, reason in not_resources():
        assert reason
        assert any(matches(gvk, pattern) for gvk in everything), pattern


@pytest.mark.parametrize("release", RELEASES)
def test_listed_kinds_have_a_registered_list(release: str) -> None:
    missing = [
        (r.group, r.version, r.list_kind)
        for r in catalog(release).resources
        if r.list_kind and (r.group, r.version, r.list_kind) not in registered(release)
    ]
    assert missing == []


@pytest.mark.parametrize("release", RELEASES)
def test_one_storage_version_a_stored_kind(release: str) -> None:
    stored: dict[tuple[str, str], list[str]] = {}
    for r in catalog(release).resources:
        if "watch" in r.verbs:
            stored.setdefault((r.group, r.plural), []).extend([r.version] if r.storage else [])
    several = {key: versions for key, versions in stored.items() if len(versions) != 1}
    assert several == {("events.k8s.io", "events"): []}, "events are kept in the core group's version"


@pytest.mark.parametrize("release", RELEASES)
def test_life_cycle_is_in_order(release: str) -> None:
    for r in catalog(release).resources:
        steps = [release_number(s) for s in (r.introduced, r.deprecated_in, r.removed_in) if s]
        assert steps == sorted(set(steps)), r
        if r.replacement:
            assert r.deprecated_in, r


def test_replacements_exist_or_are_removed_too() -> None:
    removed = facts("removed.yaml")["resources"]
    known = {spelled(gvk) for release in RELEASES for gvk in registered(release)}
    known |= {f"{entry['api_version']}/{entry['kind']}" for entry in removed}
    known.add("admission.k8s.io/v1/AdmissionReview")
    replacements = {entry["replacement"] for entry in removed if "replacement" in entry}
    replacements |= {
        r.replacement for release in RELEASES for r in catalog(release).resources if r.replacement
    }
    assert replacements - known == set()


def test_removed_kinds_are_gone_from_every_release() -> None:
    registered_ever = {spelled(gvk) for release in RELEASES for gvk in registered(release)}
    for entry in facts("removed.yaml")["resources"]:
        assert f"{entry['api_version']}/{entry['kind']}" not in registered_ever


def test_version_priority_is_that_of_kubernetes() -> None:
    ranked = ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10"]
    assert sorted(sorted(ranked), key=version_priority, reverse=True) == ranked


def test_faults_of_a_catalog_are_reported_together(tmp_path: Path) -> None:
    (tmp_path / "resources").mkdir()
    (tmp_path / "groups.yaml").write_text("order: [apps]\n")
    (tmp_path / "resources" / "x.yaml").write_text(
        "group: x.io\n"
        "resources:\n"
        "  - {kind: Lamp, plural: lamps, singular: lamp, scope: Global,"
        " versions: {v1: {introduced: '1.30', until: x}}}\n"
        "  - {kind: Hall, plural: halls, singular: hall, scope: Cluster,"
        " versions: {v1: {introduced: '1.30'}}}\n"
        "  - {kind: Door, scope: Cluster, versions: {}}\n"
    )
    diagnostics = Diagnostics()
    assert read_catalog(tmp_path, "1.36", {}, diagnostics).resources == ()
    assert [str(d).replace(str(tmp_path), "") for d in diagnostics] == [
        '/resources/x.yaml: error K501: group "x.io" has no place in groups.yaml\n  hint: add it to order',
        '/resources/x.yaml#/resources/0: error K504: scope "Global" is neither Namespaced nor Cluster',
        '/resources/x.yaml#/resources/0/versions/v1: error K503: unknown key "until"\n'
        "  hint: known: deprecated, introduced, removed, replacement, served",
        "/resources/x.yaml#/resources/1: error K505: "
        "x.io/v1 Hall is in the catalog of 1.36, but nothing defines it\n"
        "  hint: give the definitions of that release, or correct introduced and removed",
        '/resources/x.yaml#/resources/2: error K502: resource lacks "plural"',
        '/resources/x.yaml#/resources/2: error K502: resource lacks "singular"',
    ]


@pytest.fixture(scope="module")
def discovery() -> Any:
    return recorded("discovery.json")


@pytest.mark.shared
class TestAgainstARecordedServer:
    """The catalog of 1.36 says what a kube-apiserver 1.36 says in discovery."""

    def test_groups_in_order(self, discovery: Any) -> None:
        served = {(r.group, r.version) for r in catalog("1.36").resources if r.served}
        ours = [
            (group.name, [v for v in group.versions if (group.name, v) in served])
            for group in sorted(catalog("1.36").groups, key=lambda g: (-g.priority, g.name))
        ]
        assert [g for g in ours if g[0] and g[1]] == [(g["name"], g["versions"]) for g in discovery["groups"]]
        preferred = {name: versions[0] for name, versions in ours if versions}
        assert all(preferred[g["name"]] == g["preferred"] for g in discovery["groups"])

    def test_resources_and_subresources(self, discovery: Any) -> None:
        ours: dict[str, dict[str, Any]] = {}
        for r in catalog("1.36").resources:
            if not r.served:
                continue
            own = (r.group, r.version)
            listed = ours.setdefault("/".join(part for part in own if part), {})
            listed[r.plural] = (
                r.singular, r.namespaced, r.kind, sorted(r.verbs), list(r.short_names), list(r.categories)
            )  # fmt: skip
            for s in r.subresources:
                foreign = (s.group, s.version) if (s.group, s.version) != own else ("", "")
                listed[f"{r.plural}/{s.name}"] = (*foreign, r.namespaced, s.kind, sorted(s.verbs))
        theirs: dict[str, dict[str, Any]] = {}
        for group_version, resources in discovery["resources"].items():
            listed = theirs.setdefault(group_version, {})
            for r in resources:
                listed[r["name"]] = (
                    (r.get("group", ""), r.get("version", ""), r["namespaced"], r["kind"], r["verbs"])
                    if "/" in r["name"]
                    else (
                        r["singularName"], r["namespaced"], r["kind"], r["verbs"],
                        r.get("shortNames", []), r.get("categories", []),
                    )
                )  # fmt: skip
        assert ours == theirs

    def test_columns(self) -> None:
        columns = recorded("printer-columns.json")
        ours = {
            "/".join(part for part in (r.group, r.version, r.plural) if part): [
                {"name": c.name, "type": c.type, "format": c.format, "priority": c.priority}
                for c in r.printer_columns
            ]
            for r in catalog("1.36").resources
        }
        assert {key: ours[key] for key in columns} == columns
