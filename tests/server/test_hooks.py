"""Hand-written hooks beside generated modules: they are served, and regenerating leaves them alone."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.server.test_api import MERGE, ask, run

from apimachinery.server.assembly.api import AssembledApi
from apimachinery.server.catalog.options import ApiOptions
from apimachinery.server.write.reviewing import PackageReviews
from kubewright import cli

QUEUES = "/apis/messaging.kubewright.dev/v1/namespaces/default/queues"
ROOT = Path(__file__).parents[2]
OPTIONS = ApiOptions(controllers=frozenset(), packages=("kubernetes_api", "messaging_api"))


def queue(name: str, **spec: Any) -> dict[str, Any]:
    whole = {"selector": {}, **spec}
    return {
        "apiVersion": "messaging.kubewright.dev/v1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": whole,
    }


def test_an_example_kind_refuses_warns_and_selects_as_its_hooks_say() -> None:
    async def story(api: AssembledApi) -> None:
        code, made, _ = await ask(api, "POST", QUEUES, queue("orders", capacity="20Gi", ordering="Key"))
        assert code == 201, made
        code, body, _ = await ask(api, "PATCH", f"{QUEUES}/orders", {"spec": {"capacity": "30Gi"}}, MERGE)
        assert code == 200, body
        code, body, _ = await ask(api, "PATCH", f"{QUEUES}/orders", {"spec": {"capacity": "1Gi"}}, MERGE)
        assert code == 422
        assert body["details"]["causes"] == [
            {
                "reason": "FieldValueForbidden",
                "message": "Forbidden: may not become less than 30Gi",
                "field": "spec.capacity",
            }
        ]
        letter = {"queueName": "loop", "afterAttempts": 3}
        code, body, headers = await ask(api, "POST", QUEUES, queue("loop", deadLetter=letter))
        assert code == 201, body["message"]
        assert "the queue is its own dead letter queue" in headers["Warning"]
        code, body, _ = await ask(api, "GET", f"{QUEUES}?fieldSelector=spec.ordering%3DKey")
        assert [item["metadata"]["name"] for item in body["items"]] == ["orders"]

    run(story, OPTIONS)


FLAGS = "flags.kubewright.dev"
CHECKS = """
from apimachinery.kinds.hooks import Hooks
from apimachinery.meta.field_errors import FieldError, Reason


def check(flag, old):
    assert flag["apiVersion"] == "flags.kubewright.dev/v1" and (old is None or old["apiVersion"] == flag["apiVersion"])
    named = len(flag["spec"]["owners"]) if flag["spec"].get("owners") else 0
    return [] if named else [FieldError(Reason.REQUIRED, "spec.owners", "")]


def check_status(flag, old):
    seen, before = flag["status"].get("observedGeneration", 0), (old.get("status") or {}).get("observedGeneration", 0)
    return [FieldError(Reason.FORBIDDEN, "status.observedGeneration", "")] if seen < before else []


HOOKS = {"FeatureFlag": Hooks(validate=check, validate_status=check_status)}
"""


@pytest.fixture
def guarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The package of flags, with a check in the hooks of v1."""
    name = "guarded_flags_api"
    for file in (ROOT / "generated/flags_api").rglob("*"):
        target = tmp_path / name / file.relative_to(ROOT / "generated/flags_api")
        if file.suffix in (".py", ".json"):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(file.read_text().replace("flags_api", name))
    (tmp_path / name / "flags_v1" / "hooks.py").write_text(CHECKS)
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


def flag(version: str, owner: str = "", **spec: Any) -> dict[str, Any]:
    owners = {"owner": owner} if version == "v1beta1" else {"owners": [owner]}
    whole = {"type": "boolean", "variants": [{"name": "on", "value": "true"}], "defaultVariant": "on", **spec}
    return {
        "apiVersion": f"{FLAGS}/{version}",
        "kind": "FeatureFlag",
        "metadata": {"name": "a"},
        "spec": {**whole, **(owners if owner else {})},
    }


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_check_of_one_version_holds_for_what_is_written_at_another(guarded: str, version: str) -> None:
    path = f"/apis/{FLAGS}/{version}/namespaces/default/featureflags"

    def causes(body: Any) -> list[tuple[str, str]]:
        return [(each["field"], each["reason"]) for each in body["details"]["causes"]]

    async def story(api: AssembledApi) -> None:
        code, body, _ = await ask(api, "POST", path, flag(version))
        assert (code, causes(body)) == (422, [("spec.owners", "FieldValueRequired")])
        code, body, _ = await ask(api, "POST", path, flag(version, "me@a.example"))
        assert code == 201, body["message"]
        owners = {"owner": None, "owners": None}
        code, body, _ = await ask(api, "PATCH", f"{path}/a", {"spec": owners}, MERGE)
        assert (code, causes(body)) == (422, [("spec.owners", "FieldValueRequired")])
        codes = []
        for seen in (2, 1):
            status = {"status": {"observedGeneration": seen}}
            codes.append((await ask(api, "PATCH", f"{path}/a/status", status, MERGE))[0])
        assert codes == [200, 422]

    run(story, ApiOptions(controllers=frozenset(), packages=("kubernetes_api", guarded)))
    reviews = PackageReviews([guarded])
    refused = reviews.validate({"operation": "CREATE", **reviewed(flag(version))})
    assert causes(refused["status"]) == [("spec.owners", "FieldValueRequired")]
    assert reviews.validate({"operation": "CREATE", **reviewed(flag(version, "me@a.example"))})["allowed"]


def reviewed(obj: dict[str, Any]) -> dict[str, Any]:
    group, _, version = obj["apiVersion"].partition("/")
    return {"kind": {"group": group, "version": version, "kind": obj["kind"]}, "object": obj}


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
@pytest.mark.parametrize("spec", ["text", [], 5, {"owners": 3, "owner": [], "variants": "x"}])
def test_hooks_are_not_asked_about_values_of_another_shape(guarded: str, version: str, spec: Any) -> None:
    """They may rely on the schema, which refuses these."""

    async def story(api: AssembledApi) -> None:
        path = f"/apis/{FLAGS}/{version}/namespaces/default/featureflags"
        code, body, _ = await ask(api, "POST", path, {**flag(version), "spec": spec})
        assert code == 422 and "must be of type" in body["message"], body

    run(story, ApiOptions(controllers=frozenset(), packages=("kubernetes_api", guarded)))


def test_regenerating_leaves_hand_written_hooks_alone(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "generated" / "messaging_api", tmp_path / "messaging_api")
    hooks = tmp_path / "messaging_api" / "messaging_v1" / "hooks.py"
    before = hooks.read_bytes()
    config = str(ROOT / "specs" / "kubewright.yaml")
    arguments = [
        "generate",
        "-q",
        "--force",
        "--config",
        config,
        "--package",
        "messaging_api",
        "--output",
        str(tmp_path),
    ]
    assert cli.main(arguments) == 0
    assert hooks.read_bytes() == before
    (tmp_path / "messaging_api" / "messaging_v1" / "defaults.py").write_text("# changed by hand\n")
    assert cli.main(arguments) != 70
    assert hooks.read_bytes() == before
