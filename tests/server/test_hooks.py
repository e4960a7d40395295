"""Hand-written hooks beside generated modules: they are served, and regenerating leaves them alone."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from tests.server.test_api import MERGE, ask, run

from apimachinery.server.api import AssembledApi
from apimachinery.server.catalog.options import ApiOptions
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
        assert code == 201, body
        assert "the queue is its own dead letter queue" in headers["Warning"]
        code, body, _ = await ask(api, "GET", f"{QUEUES}?fieldSelector=spec.ordering%3DKey")
        assert [item["metadata"]["name"] for item in body["items"]] == ["orders"]

    run(story, OPTIONS)


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
