"""What the containers of a pod do over time, as a table: the moments of a node's clock, and what its status says."""

from __future__ import annotations

from typing import Any

import pytest

from apimachinery.server.node.behaviour import FOREVER, NodeBehaviour, Plan
from apimachinery.server.node.containers import PodLife
from apimachinery.server.node.runs import MOST_STEPS, CommandRun

IDLE = "image's-own-program"


def container(name: str, *command: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "image": "i", **({"command": list(command)} if command else {}), **more}


def sh(name: str, line: str, **more: Any) -> dict[str, Any]:
    return container(name, "/bin/sh", "-c", line, **more)


def pod(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "p", "namespace": "n", "uid": "u", "generation": 1},
        "spec": {"containers": list(containers), **spec},
    }


class Node:
    """One pod on a node whose clock the test moves."""

    def __init__(self, pod: dict[str, Any], plan: Plan | None = None) -> None:
        self.pod, self.plan = pod, plan or Plan()
        self.behaviour = NodeBehaviour()
        self.life = PodLife("u", 0.0, "10.0.0.1")

    def begin(self, container: dict[str, Any]) -> CommandRun | None:
        return self.behaviour.begin(self.pod, lambda container: {"FROM": "elsewhere"}, container)

    def ask(self, container: dict[str, Any], command: list[str]) -> int | None:
        return self.behaviour.ask(self.pod, lambda container: {}, container, command)

    def at(self, moment: float) -> dict[str, Any]:
        """The status at a moment: every change on the way is made."""
        passed = 0.0
        for _ in range(200):
            wait = self.life.move(self.pod, self.plan, passed, self.begin, self.ask)
            if passed + wait > moment:
                break
            passed += max(wait, 1e-6)
        self.life.move(self.pod, self.plan, moment, self.begin, self.ask)
        return self.life.write(self.pod, self.plan, moment, "10.244.0.1")["status"]

    def shown(self, moment: float) -> str:
        """Phase, then each container: w(aiting: reason), r(unning, R where ready), or its exit code; its restarts."""
        status = self.at(moment)
        words = [status["phase"]]
        for each in [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]:
            [(state, details)] = each["state"].items()
            word = {"waiting": f"w:{details.get('reason')}", "running": "R" if each["ready"] else "r"}
            words.append(f"{each['name']}={word.get(state, details.get('exitCode'))}+{each['restartCount']}")
        return " ".join(words)


SIDECAR = container("side", "sleep", "infinity", restartPolicy="Always")


@pytest.mark.parametrize(
    ("made", "plan", "shown"),
    [
        (pod(container("c")), Plan(), {0: "Running c=R+0", 1e6: "Running c=R+0"}),
        (pod(container("c", IDLE)), Plan(), {0: "Running c=R+0"}),
        (
            pod(container("c")),
            Plan(start_after=2, ready_after=3, succeed_after=10),
            {1: "Pending c=w:ContainerCreating+0", 4: "Running c=r+0", 6: "Running c=R+0"},
        ),
        (
            pod(container("c"), restartPolicy="Never"),
            Plan(fail_after=1, exit_code=7),
            {0.5: "Running c=R+0", 1: "Failed c=7+0"},
        ),
        (pod(container("c")), Plan(image_error=True, start_after=1), {5: "Pending c=w:ImagePullBackOff+0"}),
        (pod(container("c", "true"), restartPolicy="Never"), Plan(), {0: "Succeeded c=0+0"}),
        (pod(container("c", "/bin/false"), restartPolicy="Never"), Plan(), {0: "Failed c=1+0"}),
        (pod(sh("c", "sleep 3; exit 5"), restartPolicy="Never"), Plan(), {2: "Running c=R+0", 3: "Failed c=5+0"}),
        (
            pod(sh("c", "sleep 3; exit 5"), restartPolicy="OnFailure"),
            Plan(),
            {3: "Running c=w:CrashLoopBackOff+1", 4: "Running c=R+1", 7: "Running c=w:CrashLoopBackOff+2"},
        ),
        (pod(sh("c", "exit 0"), restartPolicy="OnFailure"), Plan(), {0: "Succeeded c=0+0"}),
        (pod(sh("c", "echo a; server --port 80")), Plan(), {9: "Running c=R+0"}),
        (pod(sh("c", "while true; do sleep 1; done")), Plan(), {9: "Running c=R+0"}),
        (pod(sh("c", "while true; do true; done")), Plan(), {9: "Running c=R+0"}),
        (
            pod(sh("c", "if [[ -r /f ]]; then exit 0; else touch /f; exit 1; fi"), restartPolicy="OnFailure"),
            Plan(),
            {0: "Running c=w:CrashLoopBackOff+1", 1: "Succeeded c=0+1"},
        ),
        (
            pod(container("c"), sh("d", "exit 3"), restartPolicy="Never"),
            Plan(),
            {0: "Running c=R+0 d=3+0"},
        ),
        (
            pod(container("c"), initContainers=[sh("a", "sleep 1"), sh("b", "sleep 2")]),
            Plan(),
            {
                0: "Pending a=r+0 b=w:PodInitializing+0 c=w:PodInitializing+0",
                1: "Pending a=0+0 b=r+0 c=w:PodInitializing+0",
                3: "Running a=0+0 b=0+0 c=R+0",
            },
        ),
        (pod(container("c"), initContainers=[container("a")]), Plan(), {0: "Running a=0+0 c=R+0"}),
        (
            pod(container("c"), initContainers=[container("a", "false")], restartPolicy="Never"),
            Plan(),
            {0: "Failed a=1+0 c=w:PodInitializing+0"},
        ),
        (
            pod(container("c"), initContainers=[container("a", "false")]),
            Plan(),
            {0: "Pending a=w:CrashLoopBackOff+1 c=w:PodInitializing+0"},
        ),
        (
            pod(sh("c", "sleep 2"), initContainers=[SIDECAR, container("a", "true")], restartPolicy="Never"),
            Plan(),
            {1: "Running side=R+0 a=0+0 c=R+0", 2: "Succeeded side=143+0 a=0+0 c=0+0"},
        ),
        (pod(container("c"), activeDeadlineSeconds=5), Plan(), {4: "Running c=R+0", 5: "Failed c=137+0"}),
        (
            pod(container("c", livenessProbe={"httpGet": {"port": 80}})),
            Plan(live=False),
            {0: "Running c=w:CrashLoopBackOff+1"},
        ),
        (
            pod(
                sh(
                    "c",
                    "echo ok >/tmp/health; sleep 10; rm -rf /tmp/health; sleep 600",
                    livenessProbe={"exec": {"command": ["cat", "/tmp/health"]}, "periodSeconds": 5},
                )
            ),
            Plan(),
            {9: "Running c=R+0", 19: "Running c=R+0", 21: "Running c=w:CrashLoopBackOff+1", 22: "Running c=R+1"},
        ),
        (pod(container("c", readinessProbe={"exec": {"command": ["/bin/false"]}})), Plan(), {60: "Running c=r+0"}),
        (pod(container("c", readinessProbe={"exec": {"command": ["/probe"]}})), Plan(), {0: "Running c=R+0"}),
        (
            pod(container("c", readinessProbe={"httpGet": {"port": 80}, "initialDelaySeconds": 15})),
            Plan(),
            {14: "Running c=r+0", 15: "Running c=R+0"},
        ),
        (
            pod(
                sh("c", "sleep 4; touch /ready; sleep 99", readinessProbe={"exec": {"command": ["cat", "/ready"]},
                                                                          "periodSeconds": 1}),
            ),
            Plan(),
            {3: "Running c=r+0", 6: "Running c=R+0"},
        ),
    ],
)  # fmt: skip
def test_what_containers_do(made: dict[str, Any], plan: Plan, shown: dict[float, str]) -> None:
    node = Node(made, plan)
    assert {moment: node.shown(moment) for moment in shown} == shown


def test_a_loop_is_not_made_up_for_when_the_clock_jumps() -> None:
    node = Node(pod(sh("c", "while true; do echo polo; sleep 1; done")))
    node.at(3)
    assert node.behaviour.log(node.pod, "c") == "polo\n" * 4
    node.at(30 * 86400)
    said = node.behaviour.log(node.pod, "c") or ""
    assert said.count("polo") < 10 * MOST_STEPS


def test_a_pod_that_is_through_changes_no_more() -> None:
    node = Node(pod(container("c", "true"), restartPolicy="Never"))
    assert node.life.move(node.pod, node.plan, 0.0, node.begin, node.ask) == FOREVER


def test_a_deadline_is_said() -> None:
    status = Node(pod(container("c"), activeDeadlineSeconds=1)).at(1)
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")


@pytest.mark.parametrize(
    ("line", "more", "message"),
    [
        ("echo -n DONE > /dev/termination-log", {}, "DONE"),
        ("echo -n DONE > /tmp/m", {"terminationMessagePath": "/tmp/m"}, "DONE"),
        ("echo why; exit 1", {"terminationMessagePolicy": "FallbackToLogsOnError"}, "why"),
        ("echo fine", {"terminationMessagePolicy": "FallbackToLogsOnError"}, None),
    ],
)
def test_termination_messages(line: str, more: dict[str, Any], message: str | None) -> None:
    status = Node(pod(sh("c", line, **more), restartPolicy="Never")).at(0)
    assert status["containerStatuses"][0]["state"]["terminated"].get("message") == message


def test_logs_are_what_commands_said() -> None:
    variables = [{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)-2"}]
    node = Node(pod(sh("c", "echo $A $(B) $FROM; echo $$HOME >/x; cat /x; sleep 1; exit 1", env=variables)))
    node.at(0.5)
    assert node.behaviour.log(node.pod, "c") == "1 1-2 elsewhere\n/root\n"
    assert node.behaviour.log(node.pod, "c", previous=True) is None
    for moment in (1.5, 2.5):
        node.at(moment)
        assert node.behaviour.log(node.pod, "c", previous=True) == "1 1-2 elsewhere\n/root\n"
