"""``kubewright validate`` at the root of a repository: charts, kustomizations, patches, and files of other kinds."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from tests.tools.command import kubewright

WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: nginx}]}
"""
KUSTOMIZATION = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def findings(folder: Path, *options: str) -> list[dict[str, Any]]:
    _, out, err = kubewright("validate", folder, *options, "--format", "json")
    assert out, err
    found: list[dict[str, Any]] = json.loads(out)["findings"]
    return found


def said(folder: Path, *options: str) -> list[str]:
    """Severity, place below the folder, and message of each finding."""
    return [
        f"{f['severity']} {os.path.relpath(f['file'], folder)}:{f['line']} {f['message']}"
        for f in findings(folder, *options)
    ]


CHART = {
    "chart/Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n",
    "chart/values.yaml": "kind: a\nspec: b\n",
    "chart/templates/a.yaml": "apiVersion: v1\nkind: {{ .Values.kind }}\n{{- if x }}\nmetadata: {}\n{{- end }}\n",
    "chart/templates/_helpers.tpl": "{{ define }}\n",
}


def test_a_repository_without_faults_has_no_findings(tmp_path: Path) -> None:
    files = {
        "web.yaml": WEB,
        "kustomization.yaml": f"{KUSTOMIZATION}resources: [web.yaml]\ncomponents: [part]\n",
        "part/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n",
        "mkdocs.yml": "site_name: x\nextensions: [!!python/name:x.y {}]\n",
        "values.yaml": "kind: web\nreplicas: 1\n",
        "package.json": '{"name": "x", "kind": "y"}',
        "openapi.yaml": "openapi: 3.0.0\ninfo: {title: a, version: b}\n",
        "list.json": "[1, 2]",
        "config.yaml": "kind: CustomResourceStateMetrics\nspec: {resources: []}\n",
        "merged.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  !!merge <<: &x {a: b}\n",
    }
    code, out, err = kubewright("validate", written(tmp_path, files))
    assert (code, out, err) == (0, "", "4 objects: no findings; 6 other files\n")


def test_a_chart_is_one_line(tmp_path: Path) -> None:
    assert said(written(tmp_path, {**CHART, "web.yaml": WEB})) == [
        "note chart:0 a Helm chart (1 template): not judged"
    ]


def test_a_chart_is_rendered_where_helm_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = written(tmp_path / "repository", CHART)
    monkeypatch.setenv("PATH", "")
    assert said(folder, "--helm") == ["note chart:0 a Helm chart: not judged, for helm is not on PATH"]
    helm = tmp_path / "bin" / "helm"
    rendered = WEB.replace("image: nginx", "image: 3")
    written(
        tmp_path,
        {"bin/helm": f"#!/bin/sh\n/bin/cat <<'END'\n---\n# Source: c/templates/a.yaml\n{rendered}END\n"},
    )
    helm.chmod(0o755)
    monkeypatch.setenv("PATH", str(helm.parent))
    [finding] = findings(folder, "--helm")
    assert finding["object"] == {"kind": "Deployment", "name": "web", "source": "c/templates/a.yaml"}
    assert finding["hint"] == 'quote it: "3"'
    written(tmp_path, {"bin/helm": "#!/bin/sh\necho 'Error: no values' >&2\nexit 1\n"})
    code, out, _ = kubewright("validate", folder, "--helm")
    assert (code, "K016: helm template: Error: no values" in out) == (2, True)


def test_a_kustomization_is_judged_as_kustomize_does(tmp_path: Path) -> None:
    text = f"{KUSTOMIZATION}resource: [web.yaml]\nresources: [missing.yaml]\npatches: {{a: b}}\n"
    found = said(written(tmp_path, {"kustomization.yaml": text, "web.yaml": WEB}))
    assert found == [
        'error kustomization.yaml:3 resource: unknown field "resource" of a kustomization',
        "error kustomization.yaml:4 resources[0]: no such file or folder: missing.yaml",
        "error kustomization.yaml:5 patches: a list is wanted here",
    ]


PATCHES = {
    "good": ("kind: Deployment\nmetadata: {name: web}\napiVersion: apps/v1\nspec: {replicas: 3}\n", []),
    "breaks its target": (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  template:\n    spec:\n"
        "      containers:\n        - name: web\n          imagePullPolicy: Soon\n",
        [
            'error p.yaml:9 spec.template.spec.containers[0].imagePullPolicy: Unsupported value: "Soon": '
            'supported values: "Always", "IfNotPresent", "Never"'
        ],
    ),
    "an unknown field": (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicsa: 3\n",
        ['warning p.yaml:5 unknown field "spec.replicsa"'],
    ),
    "without a target": (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: other}\nspec: {replicas: 3}\n",
        ["note kustomization.yaml:0 a patch without a target among the files here: not judged"],
    ),
    "JSON that fits": ("- {op: add, path: /spec/replicas, value: 3}\n", []),
    "JSON that does not": (
        "- {op: add, path: /spec/paused, value: true}\n- {op: remove, path: /spec/replicas}\n",
        ["error p.yaml:2 the patch does not fit: "],
    ),
    "JSON that breaks its target": (
        "- {op: add, path: /spec/replicas, value: three}\n",
        ["error p.yaml:1 spec.replicas: cannot unmarshal string into a field of type int32"],
    ),
}


@pytest.mark.parametrize("name", PATCHES)
def test_patches_are_judged_by_what_they_make(name: str, tmp_path: Path) -> None:
    patch, expected = PATCHES[name]
    target = "{path: p.yaml, target: {kind: Deployment, name: web}}" if patch[0] == "-" else "{path: p.yaml}"
    text = f"{KUSTOMIZATION}resources: [web.yaml]\npatches: [{target}]\n"
    found = said(written(tmp_path, {"kustomization.yaml": text, "web.yaml": WEB, "p.yaml": patch}))
    assert len(found) == len(expected)
    assert all(one.startswith(start) for one, start in zip(found, expected, strict=True)), found


def test_overlays_patch_what_bases_name_and_components_what_they_are_put_on(tmp_path: Path) -> None:
    patch = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: many}\n"
    files = {
        "base/web.yaml": WEB,
        "base/kustomization.yaml": f"{KUSTOMIZATION}resources: [web.yaml]\nnamePrefix: our-\n",
        "part/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"
        f"patches:\n  - patch: |-\n      {patch.strip().replace(chr(10), chr(10) + '      ')}\n",
        "prod/kustomization.yaml": f"{KUSTOMIZATION}resources: [../base]\ncomponents: [../part]\n",
    }
    folder = written(tmp_path, files)
    wanted = (
        "error part/kustomization.yaml:4 spec.replicas: cannot unmarshal string into a field of type int32"
    )
    assert said(folder) == [wanted]
    assert [f.replace("../", "") for f in said(folder / "prod")] == [wanted]


def test_a_base_is_judged_with_the_labels_and_the_namespace_of_its_overlay(tmp_path: Path) -> None:
    bare = WEB.replace("  selector: {matchLabels: {app: web}}\n", "").replace("labels: {app: web}", "")
    binding = (
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: b}\n"
        "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: r}\n"
        "subjects: [{kind: ServiceAccount, name: a}]\n"
    )
    files = {"base/web.yaml": bare, "base/b.yaml": binding}
    assert len(said(written(tmp_path, files))) == 3
    files["base/kustomization.yaml"] = f"{KUSTOMIZATION}resources: [web.yaml, b.yaml]\n"
    files["base/ns.yaml"] = "apiVersion: v1\nkind: Namespace\nmetadata: {name: _}\n"
    files["base/hooks.yaml"] = (
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: h}\n"
        "webhooks: [{name: a.b.c, sideEffects: None, admissionReviewVersions: [v1], "
        "clientConfig: {service: {name: s}}}]\n"
    )
    assert len(said(written(tmp_path, files))) == 5
    files["base/kustomization.yaml"] = f"{KUSTOMIZATION}resources: [web.yaml, b.yaml, ns.yaml, hooks.yaml]\n"
    overlay = "resources: [../base]\ncommonLabels: {app: web}\nnamespace: shop\n"
    files["prod/kustomization.yaml"] = f"{KUSTOMIZATION}{overlay}"
    assert said(written(tmp_path, files)) == []


def test_templates_are_one_line_a_folder(tmp_path: Path) -> None:
    files = {
        "t/a.yaml": WEB.replace("name: web}\nspec", "name: '{{ name }}'}\nspec"),
        "t/b.yaml": "apiVersion: v1\nkind: Pod\n{{ if x }}\n",
        "c.yaml": WEB.replace("nginx", "'{{ kept }}'"),
    }
    assert said(written(tmp_path, files)) == ["note t:0 2 templates: not judged"]


def test_kinds_that_nobody_describes_are_one_finding_each(tmp_path: Path) -> None:
    one = "apiVersion: example.com/v1\nkind: Shelf\nmetadata: {name: a}\n"
    found = said(written(tmp_path, {"a.yaml": f"{one}---\n{one}", "b.yaml": one}))
    assert found == ["error a.yaml:2 kind: no schema for Shelf in example.com/v1 (and 2 more objects of it)"]


def test_configurations_of_programs_are_no_objects(tmp_path: Path) -> None:
    [note] = said(written(tmp_path, {"kind.yaml": "apiVersion: kind.x-k8s.io/v1alpha4\nkind: Cluster\n"}))
    assert note.startswith(
        "note kind.yaml:1 Cluster of kind.x-k8s.io/v1alpha4 is the configuration of a program"
    )


def test_every_report_names_the_object(tmp_path: Path) -> None:
    wrong = WEB.replace("{name: web}", "{name: web, namespace: shop}", 1).replace("nginx", "3")
    folder = written(tmp_path, {"a.yaml": f"{wrong}---\n{WEB}"})
    reports = {
        form: kubewright("validate", folder, "--format", form)[1]
        for form in ("text", "github", "sarif", "junit")
    }
    assert "error V010: Deployment shop/web: spec.template" in reports["text"]
    assert "::Deployment shop/web: spec.template" in reports["github"]
    [run] = json.loads(reports["sarif"])["runs"]
    [place] = run["results"][0]["locations"][0]["logicalLocations"]
    assert place == {"name": "shop/web", "fullyQualifiedName": "Deployment shop/web", "kind": "object"}
    assert run["tool"]["driver"]["version"] and run["results"][0]["partialFingerprints"]
    assert run["tool"]["driver"]["rules"][0]["name"] == "AValueOfAWrongType"
    suite = ElementTree.fromstring(reports["junit"])
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert [case.get("name") for case in suite] == ["Deployment shop/web", "Deployment web"]


def test_a_green_run_has_a_case_for_each_object(tmp_path: Path) -> None:
    out = kubewright("validate", written(tmp_path, {"a.yaml": f"{WEB}---\n{WEB}"}), "--format", "junit")[1]
    assert ElementTree.fromstring(out).get("tests") == "2"


def test_values_to_fill_in_are_one_note(tmp_path: Path) -> None:
    ingress = """\
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec:
  rules:
  - host: "web.{{DOMAIN}}"
  - host: ${HOST}
  - host: ${HOST/#a/b
  - host: $(the-host)
  - host: __HOST__
  - host: "<< Host >>"
  - host: FILLED BY THE OPERATOR
  - host: WRONG
"""
    written(tmp_path, {"a.yaml": ingress})
    assert [line.partition(" ")[2][:60] for line in said(tmp_path)] == [
        'a.yaml:13 spec.rules[7].host: Invalid value: "WRONG": a lowe',
        "a.yaml:6 7 values to be filled in: not judged",
    ]
    code, out, _ = kubewright("validate", tmp_path / "a.yaml")
    assert code == 1 and out.count("a lowercase RFC 1123 subdomain") == 8, (
        "a file that is named is judged as it is"
    )


def test_a_number_to_fill_in_is_no_finding(tmp_path: Path) -> None:
    written(tmp_path, {"a.yaml": WEB.replace("spec:", "spec:\n  replicas: NUM_NODES", 1)})
    assert [line[:4] for line in said(tmp_path)] == ["note"]
    written(tmp_path, {"a.yaml": WEB.replace("spec:", "spec:\n  replicas: three", 1)})
    assert [line[:4] for line in said(tmp_path)] == ["erro"]


@pytest.mark.parametrize("name", ["@NAME@", "$NAME", "web-$$name$$", "{{ name }}", "${NAME}"])
def test_an_object_without_a_name_yet_is_a_template(name: str, tmp_path: Path) -> None:
    written(tmp_path, {"a.yaml": f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n"})
    assert said(tmp_path) == ["note a.yaml:0 a template: not judged"]


def test_a_server_allocates_the_port_of_health_checks(tmp_path: Path) -> None:
    service = (
        "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n"
        "spec: {type: LoadBalancer, externalTrafficPolicy: Local, ports: [{port: 80}]}\n"
    )
    assert said(written(tmp_path, {"a.yaml": service})) == []


def test_an_object_is_judged_by_the_definition_that_suits_it_best(tmp_path: Path) -> None:
    """controller-gen writes one definition, and what is applied is another, patched by a script."""
    text = (Path(__file__).parent / "validate_widget_crd.yaml").read_text()
    crd = yaml.safe_load(text)
    loose = json.loads(text) if text.startswith("{") else yaml.safe_load(text)
    for version in loose["spec"]["versions"]:
        version["schema"] = {
            "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        }
    names, group = crd["spec"]["names"], crd["spec"]["group"]
    version = crd["spec"]["versions"][0]["name"]
    odd = f"apiVersion: {group}/{version}\nkind: {names['kind']}\nmetadata: {{name: a}}\nspec: 1\n"
    written(tmp_path, {"crds/b.yaml": text, "odd.yaml": odd})
    assert any(line.startswith("error odd.yaml") for line in said(tmp_path))
    for name in ("crds/a.yaml", "crds/c.yaml"):
        written(tmp_path, {name: yaml.safe_dump(loose)})
        assert said(tmp_path) == []
        (tmp_path / name).unlink()


def test_what_tests_and_tools_keep_next_to_objects_is_put_aside(tmp_path: Path) -> None:
    part = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 3}\n"
    files = {
        "kuttl/00-assert.yaml": part,
        "kuttl/00-install.yaml": WEB,
        "chainsaw/chainsaw-test.yaml": "apiVersion: chainsaw.kyverno.io/v1alpha1\nkind: Test\nspec:\n"
        "  steps:\n  - try:\n    - apply: {file: web.yaml}\n    - assert: {file: ../expected/web.yaml}\n",
        "chainsaw/assertions.yaml": part,
        "chainsaw/web.yaml": WEB,
        "expected/web.yaml": part,
        "kind/patches/kube-scheduler.yaml": part,
        "base/kustomization.yaml": KUSTOMIZATION + "resources: [web.yaml]\n",
        "base/web.yaml": WEB,
        "base/manager_env.yaml": part,
        # As kubebuilder writes them, with a name that no object here has.
        "base/manager_webhook_patch.yaml": part.replace("web", "controller-manager"),
        "secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {a: 'ENC[AES256,data:x]'}\nsops: {}\n",
    }
    assert sorted(said(written(tmp_path, files))) == [
        "error chainsaw/chainsaw-test.yaml:2 kind: no schema for Test in chainsaw.kyverno.io/v1alpha1",
        "note base:0 2 patches that no kustomization names: not judged",
        "note chainsaw/assertions.yaml:0 assertions of a test: not judged",
        "note expected/web.yaml:0 assertions of a test: not judged",
        "note kind/patches/kube-scheduler.yaml:0 a patch that no kustomization names: not judged",
        "note kuttl/00-assert.yaml:0 assertions of a test: not judged",
        "note secret.yaml:0 encrypted by SOPS: not judged",
    ]


def test_chainsaw_patches_what_it_found(tmp_path: Path) -> None:
    part = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, labels: {a: b}}\n"
    begin = "apiVersion: chainsaw.kyverno.io/v1alpha1\nkind: Test\nspec:\n  steps:\n  - try:\n"
    files = {
        "found/chainsaw-test.yaml": f"{begin}    - assert: {{file: 00-assert.yaml}}\n    - apply: {{file: 01.yaml}}\n",
        "found/00-assert.yaml": part,
        "found/01.yaml": part,
        "labelled/chainsaw-test.yaml": f"{begin}    - assert: {{file: 00-assert.yaml}}\n"
        "    - apply: {file: 01.yaml}\n",
        "labelled/00-assert.yaml": part.replace("name: web, ", ""),
        "labelled/01.yaml": part,
        "own/chainsaw-test.yaml": f"{begin}    - apply: {{file: 01.yaml}}\n    - assert: {{file: 02-assert.yaml}}\n"
        "    - apply: {file: 01.yaml}\n    - patch: {file: 03.yaml}\n",  # what the test made itself was whole
        "own/01.yaml": part,
        "own/02-assert.yaml": part,
        "own/03.yaml": part,
    }
    found = [each for each in sorted(said(written(tmp_path, files))) if "chainsaw-test" not in each]
    assert [each for each in found if each.startswith("note")] == [
        "note found/00-assert.yaml:0 assertions of a test: not judged",
        "note found/01.yaml:0 a part of an object that a test found before: not judged",
        "note labelled/00-assert.yaml:0 assertions of a test: not judged",
        "note labelled/01.yaml:0 a part of an object that a test found before: not judged",
        "note own/02-assert.yaml:0 assertions of a test: not judged",
        "note own/03.yaml:0 a part of an object that a test found before: not judged",
    ]
    assert {each.split(":")[0] for each in found if each.startswith("error")} == {"error own/01.yaml"}


def test_a_refused_definition_does_not_stand_before_a_good_one(tmp_path: Path) -> None:
    good = (Path(__file__).parent / "validate_widget_crd.yaml").read_text()
    definition = yaml.safe_load(good)
    names, group = definition["spec"]["names"], definition["spec"]["group"]
    version = definition["spec"]["versions"][0]["name"]
    odd = f"apiVersion: {group}/{version}\nkind: {names['kind']}\nmetadata: {{name: a}}\nspec: 1\n"
    definition["spec"]["scope"] = ""
    for own, other in (("a.yaml", "b.yaml"), ("b.yaml", "a.yaml")):
        files = {own: good, other: yaml.safe_dump(definition), "odd.yaml": odd}
        found = [each for each in said(written(tmp_path / own[0], files)) if "odd.yaml" in each]
        assert found and not any("its CRD is refused" in each for each in found)
