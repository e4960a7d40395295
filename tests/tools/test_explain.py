"""``kubewright explain``: built-in kinds, custom ones, and what is not there, in the form of ``kubectl explain``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.tools import explained
from tests.tools.command import kubewright

WIDGET = Path(__file__).parent / "validate_widget_crd.yaml"
SHARED = Path(__file__).parents[2] / "../shared"


def explain(*arguments: str | Path) -> str:
    code, out, err = kubewright("explain", *arguments)
    assert code == 0, err
    return out


def test_a_field_of_a_built_in_kind_reads_as_kubectl_shows_it() -> None:
    assert explain("deployment.spec.strategy") == (
        "GROUP:      apps\n"
        "KIND:       Deployment\n"
        "VERSION:    v1\n"
        "\n"
        "FIELD: strategy <DeploymentStrategy>\n"
        "\n"
        "DESCRIPTION:\n"
        "    The deployment strategy to use to replace existing pods with new ones.\n"
        "    DeploymentStrategy describes how to replace existing pods with new ones.\n"
        "\n"
        "FIELDS:\n"
        "  rollingUpdate <RollingUpdateDeployment>\n"
        "    Rolling update config params. Present only if DeploymentStrategyType = RollingUpdate.\n"
        "\n"
        "  type <string>\n"
        '    Type of deployment. Can be "Recreate" or "RollingUpdate". Default is RollingUpdate.\n'
    )


def test_fields_of_items_need_no_index_and_recursion_in_a_schema_ends() -> None:
    assert "  containerPort <integer> -required-\n" in explain("pod.spec.containers.ports")
    assert explain("pod.spec.containers[].ports") == explain("pod.spec.containers.ports")
    assert explain("crd", "--recursive").count("\n") < 5000


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("cm.data", "data <map[string]string>"),
        ("resourcequota.spec.hard", "hard <map[string]Quantity>"),
        ("pdb.spec.maxUnavailable", "maxUnavailable <IntOrString>"),
        ("lease.spec.renewTime", "renewTime <string>"),
        ("pods.metadata", "metadata <ObjectMeta>"),
        ("pod.spec.containers", "containers <[]Container>"),
        ("ingresses.networking.k8s.io.spec.rules", "rules <[]IngressRule>"),
        ("deployments.v1.apps.spec.replicas", "replicas <integer>"),
        ("pods.v1.spec", "spec <PodSpec>"),
    ],
)
def test_kinds_go_by_any_of_their_names_and_types_by_kubectls(path: str, field: str) -> None:
    assert f"\nFIELD: {field}\n" in explain(path)


def test_the_version_that_discovery_prefers_is_taken_unless_another_is_wanted() -> None:
    assert "VERSION:    v2\n" in explain("hpa")
    assert "targetCPUUtilizationPercentage <integer>" in explain(
        "hpa.spec", "--api-version", "autoscaling/v1"
    )
    assert not explain("event").startswith("GROUP")
    assert explain("events.events.k8s.io").startswith("GROUP:      events.k8s.io\n")


def recorded() -> list[Any]:
    path = SHARED / "parity/kubectl/explain.yaml"
    if not path.exists():
        return [pytest.param({}, marks=pytest.mark.skip(reason=f"{path} is not here"), id="absent")]
    steps = yaml.safe_load(path.read_text())
    steps = steps["steps"] if isinstance(steps, dict) else steps
    return [pytest.param(s, id=s["id"]) for s in steps if s["expect"]["exit"] == 0]


@pytest.mark.parametrize("step", recorded())
def test_recorded_answers_of_kubectl_have_the_same_fields(step: dict[str, Any]) -> None:
    given = [word for word in step["run"].split()[1:] if not word.startswith("--output")]
    out = explain(*given, "--kubernetes", "1.36")
    ours = [line.replace(":  ", ": ") for line in out.split("\n")]
    wanted = [line for line in step["expect"]["stdout"].split("\n") if not line.startswith("  enum:")]
    # The definitions of releases have no enums; whole lists of them are passed over too.
    wanted = [line for line in wanted if (line != "ENUM:" and not line.startswith("    ")) or "<" in line]
    there = {re.sub(r" +", " ", line.strip()) for line in ours}
    assert [line for line in wanted if line.strip() not in there] == []


def test_a_custom_kind_by_its_plural() -> None:
    out = explain("widgets.spec", "--crds", WIDGET)
    assert "\n  size <integer> -required-\n" in out
    assert "\n  limit <integer>\n  default: 5\n" in out
    assert "\nDEFAULT: 5\n" in explain("widget.spec.limit", "--crds", WIDGET)


def test_a_custom_kind_in_several_versions(tmp_path: Path) -> None:
    def version(name: str, served: bool) -> dict[str, Any]:
        field = {"type": "string", "enum": ["A", "B"], "description": f"of {name}\x1b[2J"}
        return {
            "name": name,
            "served": served,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"mode": field}}},
        }

    crd = tmp_path / "crd.yaml"
    names = {"kind": "Thing", "plural": "things", "shortNames": ["th"]}
    versions = [version("v1beta1", True), version("v1", True), version("v2", False)]
    spec = {"group": "example.com", "names": names, "versions": versions}
    document = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": spec}
    crd.write_text(yaml.safe_dump(document))
    assert explain("th.mode", "--crds", crd) == (
        "GROUP:      example.com\nKIND:       Thing\nVERSION:    v1\n\nFIELD: mode <string>\n\n"
        "ENUM:\n    A\n    B\n\nDESCRIPTION:\n    of v1\\x1b[2J\n"
    )
    assert "of v1beta1" in explain("thing.mode", "--crds", crd, "--api-version", "example.com/v1beta1")
    assert "of v2" in explain("thing.mode", "--crds", crd, "--api-version", "example.com/v2")
    code, _, err = kubewright("explain", "thing", "--crds", crd, "--api-version", "example.com/v3")
    assert (code, err) == (
        1,
        "kubewright explain: no kind 'thing' in example.com/v3; it is in example.com/v1, example.com/v1beta1, "
        "example.com/v2\n",
    )


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("deployment.spec.replcas", "Deployment.spec has no field 'replcas'; did you mean 'replicas'?"),
        (
            "cm.zzz",
            "ConfigMap has no field 'zzz'; it has apiVersion, binaryData, data, immutable, kind, metadata",
        ),
        ("deployment.spec.replicas.more", "Deployment.spec.replicas has no field 'more'; it has no fields"),
        ("deploymnt", "no kind 'deploymnt'; did you mean 'deployment'?"),
        ("zzzzzzz", "no kind 'zzzzzzz'; give its CRD by --crds"),
        (".spec", "no kind ''; a path begins with a kind and has dots: deploy.spec.strategy"),
        (
            "deploy/spec",
            "no kind 'deploy/spec'; a path begins with a kind and has dots: deploy.spec.strategy",
        ),
    ],
)
def test_what_is_not_there_is_told_with_what_is(path: str, said: str) -> None:
    assert kubewright("explain", path) == (1, "", f"kubewright explain: {said}\n")


def test_what_cannot_be_used_is_exit_code_2() -> None:
    assert kubewright("explain", "pod", "--kubernetes", "1.2")[0] == 2
    assert kubewright("explain", "pod", "--crds", "no-such-file.yaml")[0] == 2


@pytest.mark.skipif(explained.KUBECTL is None, reason="kubectl is not on PATH")
def test_a_page_is_that_of_kubectl() -> None:
    """A few of those that `make explained` compares, all of them."""
    assert [*explained.differences("1.37", limit=8)] == []
