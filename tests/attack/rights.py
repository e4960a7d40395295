"""Random worlds of roles, labels, aggregation, bindings, impersonation, certificates, tokens and nodes: nobody gains a
right that he could not grant.

    python -m tests.attack.rights URL TOKEN [URL TOKEN] [--steps 5000] [--seed 1]
    make attack ATTACK="--only rights [--reference KUBECONFIG]"

play worlds against one server, or the same against two and compare every answer: code, and what it says. The second
is a kube-apiserver (``--authorization-mode=Node,RBAC``, the plugin NodeRestriction on and ServiceAccount off, and next
to it ``clusterrole-aggregation-controller``). A write is made dry first, and again after a while where the answers
differ: kube-apiserver's authorizer hears of a write some time after it was answered.

One thing is not compared: kube-apiserver remembers by which way of impersonation a user got in, and tries it first
the next time; so texts of refusals, and groups of nodes, depend on what was before.

The law, which needs no other server: what anybody may do after a write and might not before, the writer might do before
it, unless he holds ``escalate`` on the role or ``bind`` on what the binding names.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.access.decisions import Side
from tests.attack.right_worlds import (
    ACCOUNTS,
    CERTIFICATES,
    GROUP,
    KINDS,
    RBAC,
    RESOURCES,
    SIGNERS,
    VERBS,
    Json,
    Step,
    World,
    dry,
)
from tests.attack.target import Target

SETTLE_SECONDS, TRIES = 0.1, 6
Atom = tuple[str, str, str, str, str]
"""Scope, verb, group, resource, name."""


# The law.


def matches(rule: Json, verb: str, group: str, resource: str, name: str) -> bool:
    """Whether a rule allows it, read as the documentation has it."""

    def has(key: str, *wanted: str) -> bool:
        return any(value in (rule.get(key) or ()) for value in wanted)

    _, slash, subresource = resource.partition("/")
    return (
        has("verbs", verb, "*")
        and has("apiGroups", group, "*")
        and has("resources", resource, "*", *([f"*/{subresource}"] if slash else []))
        and (not rule.get("resourceNames") or name in rule["resourceNames"])
    )


class Rights:
    """What every account of a world may do, by the roles and bindings that a server holds."""

    def __init__(self, world: World, side: Side) -> None:
        self._roles: dict[tuple[str, str], list[Json]] = {}
        self._held: dict[tuple[int, str], list[Json]] = {}
        listed = {plural: side.call("GET", f"{RBAC}/{plural}")[1]["items"] for plural in KINDS}
        gathering = [role for role in listed["clusterroles"] if role.get("aggregationRule")]
        for role in (*listed["clusterroles"], *listed["roles"]):
            self._roles[role["metadata"].get("namespace", ""), role["metadata"]["name"]] = (
                role.get("rules") or []
            )
        for _ in gathering:  # they may gather each other
            for role in gathering:
                self._roles["", role["metadata"]["name"]] = self._gathered(role, listed["clusterroles"])
        for number in range(ACCOUNTS):
            for scope in ("", *world.spaces):
                self._held[number, scope] = []
            for binding in (*listed["clusterrolebindings"], *listed["rolebindings"]):
                scope = binding["metadata"].get("namespace", "")
                ref = binding["roleRef"]
                key = ("" if ref["kind"] == "ClusterRole" else scope, ref["name"])
                if (number, scope) in self._held and _names(binding, number, world.spaces[0]):
                    self._held[number, scope] += self._roles.get(key, [])

    def _gathered(self, role: Json, roles: list[Json]) -> list[Json]:
        rules: list[Json] = []
        for selector in role["aggregationRule"].get("clusterRoleSelectors") or ():
            wanted = (selector.get("matchLabels") or {}).items()
            for other in roles:
                if other is not role and wanted <= (other["metadata"].get("labels") or {}).items():
                    rules += [
                        rule for rule in self._roles["", other["metadata"]["name"]] if rule not in rules
                    ]
        return rules

    def may(self, number: int, atom: Atom) -> bool:
        """Whether an account may."""
        scope, *asked = atom
        scopes = ("", scope) if scope else ("",)
        return any(matches(rule, *asked) for each in scopes for rule in self._held[number, each])

    def held(self, number: int, atoms: Sequence[Atom]) -> set[Atom]:
        """What of these an account may."""
        return {atom for atom in atoms if self.may(number, atom)}


def _names(binding: Json, number: int, space: str) -> bool:
    """Whether a binding is an account's."""
    for subject in binding.get("subjects") or ():
        if subject["kind"] == "ServiceAccount":
            if (subject["name"], subject.get("namespace")) == (f"u{number}", space):
                return True
        elif subject["name"] in (f"system:serviceaccounts:{space}", "system:serviceaccounts"):
            return True
    return False


def atoms(world: World) -> list[Atom]:
    """Rights that are looked at."""
    return [
        (scope, verb, group, resource, name)
        for scope in ("", *world.spaces)
        for verb in (*VERBS, "any")
        for group, resource in (*(each for each in RESOURCES if each[0] != "*"), ("any.example.com", "any"))
        for name in ("", world.names[0], SIGNERS[0])
        if verb != "*"
    ]


def unlawful(step: Step, before: Rights, after: Rights, looked_at: Sequence[Atom], old: Any, new: Any) -> str:
    """What somebody gained that the actor could not give; "" where nothing is wrong."""
    actor = step.actor
    assert actor is not None
    ref = (new or old or {}).get("roleRef")
    scope = (new or old or {}).get("metadata", {}).get("namespace", "")
    name = (new or old or {}).get("metadata", {}).get("name", "")
    if ref:
        leave = (
            scope,
            "bind",
            GROUP,
            "clusterroles" if ref["kind"] == "ClusterRole" else "roles",
            ref["name"],
        )
    else:
        leave = (scope, "escalate", GROUP, "roles" if scope else "clusterroles", name)
    posts = step.method == "POST" and not ref  # the name of a new role is not in the path
    if before.may(actor, leave) or (posts and before.may(actor, (*leave[:4], ""))):
        return ""
    for number in range(ACCOUNTS):
        gained = after.held(number, looked_at) - before.held(number, looked_at)
        for atom in sorted(gained):
            if not before.may(actor, atom):
                return f"u{number} gained {atom}, which u{actor} had not"
    return ""


# The play.


@dataclass
class Counts:
    """How much was played, and what was wrong."""

    steps: int = 0
    allowed: int = 0
    laws: int = 0
    forked: bool = False
    """Whether roles that gather each other keep other rules on one server than on the other: what they once had stays
    for ever, and when each is gathered is nobody's to say."""
    wrong: list[str] = field(default_factory=list)


class Play:
    """A world on one server or two."""

    def __init__(self, world: World, sides: Sequence[Side]) -> None:
        self.world, self.sides = world, sides
        self.counts = Counts()
        self._atoms = atoms(world)
        self._actors: list[list[Side]] = []

    def begin(self) -> None:
        """Makes the world; every account gets a token."""
        for step in self.world.first():
            for side in self.sides:
                status, answer = side.call(step.method, step.path, step.body)
                if status != 201:
                    raise SystemExit(f"{step.path}: {status} {answer}")
        for side in self.sides:
            actors = []
            for number in range(ACCOUNTS):
                path = f"/api/v1/namespaces/{self.world.spaces[0]}/serviceaccounts/u{number}/token"
                token = side.call("POST", path, {"spec": {"expirationSeconds": 86400}})[1]["status"]["token"]
                actors.append(Side(side.url, token))
            self._actors.append(actors)
        time.sleep(SETTLE_SECONDS if len(self.sides) < 2 else 1.0)

    def run(self, steps: int) -> Counts:
        """Plays so many steps."""
        for _ in range(steps):
            if self.counts.forked:
                break
            step = self.world.step()
            answers = self._agreed(step, dry(step.path) if step.stays else step.path)
            self.counts.steps += 1
            if answers is None or not step.stays:
                continue
            if all(status < 300 for status, _ in answers):
                self.counts.allowed += 1
                self._write(step)
        return self.counts

    def end(self) -> None:
        """Deletes the world."""
        for side in self.sides:
            for plural in ("clusterroles", "clusterrolebindings"):
                for name in (*self.world.names, f"{self.world.prefix}writer"):
                    side.call("DELETE", f"{RBAC}/{plural}/{name}")
            for number in range(3):
                side.call("DELETE", f"{CERTIFICATES}/{self.world.prefix}c{number}")
            for node in ("n1", "n2"):
                side.call("DELETE", f"/api/v1/nodes/{self.world.prefix}{node}")
            for space in self.world.spaces:
                side.call("DELETE", f"/api/v1/namespaces/{space}")
        for side in (actor for actors in self._actors for actor in actors):
            side.close()

    def _ask(self, index: int, step: Step, path: str) -> tuple[int, Any]:
        side = self.sides[index] if step.actor is None else self._actors[index][step.actor]
        return side.call(step.method, path, step.body, step.headers)

    def _agreed(self, step: Step, path: str) -> list[tuple[int, Any]] | None:
        """The answers of all, None where they do not agree even after a while."""
        for turn in range(TRIES):
            answers = [self._ask(index, step, path) for index in range(len(self.sides))]
            shown = [_shown(step, *answer) for answer in answers]
            if any(status >= 500 for status, _ in answers[:1]):
                break
            if shown[0] == shown[-1]:
                return answers
            time.sleep(SETTLE_SECONDS * (turn + 1))
        self.counts.wrong.append(f"{step}: " + " | ".join(f"{s} {json.dumps(a)[:600]}" for s, a in answers))
        return None

    def _write(self, step: Step) -> None:
        lawful = step.what == "right"
        if lawful:
            before, old = Rights(self.world, self.sides[0]), self._present(step)
        for index in range(len(self.sides)):
            status, answer = self._ask(index, step, step.path)
            if status >= 300:
                self.counts.wrong.append(
                    f"{step}: {status} for good, dry allowed: {json.dumps(answer)[:400]}"
                )
        if len(self.sides) > 1:
            self._settle()
        if lawful:
            self.counts.laws += 1
            after, new = Rights(self.world, self.sides[0]), self._present(step)
            if fault := unlawful(step, before, after, self._atoms, old, new):
                self.counts.wrong.append(f"{step}: {fault}")

    def _settle(self) -> None:
        """Until both have the same roles and bindings: aggregation takes its time on either."""
        for turn in range(TRIES):
            states = [self._state(side) for side in self.sides]
            if states[0] == states[-1]:
                return
            time.sleep(SETTLE_SECONDS * (turn + 1))
        if all(_gather_each_other(state) for state in states):
            self.counts.forked = True
            return
        apart = [key for key in {**states[0], **states[-1]} if states[0].get(key) != states[-1].get(key)]
        self.counts.wrong.append(f"{apart} differ: {[state.get(apart[0]) for state in states]}")

    def _state(self, side: Side) -> dict[str, Any]:
        found = {}
        for plural in KINDS:
            for item in side.call("GET", f"{RBAC}/{plural}")[1]["items"]:
                metadata = item["metadata"]
                if metadata["name"].startswith(self.world.prefix):
                    kept = (
                        item.get(key) or [] for key in ("rules", "aggregationRule", "roleRef", "subjects")
                    )
                    found[f"{plural} {metadata.get('namespace')} {metadata['name']}"] = [
                        metadata.get("labels") or {},
                        *kept,
                    ]
        return found

    def _present(self, step: Step) -> Any:
        path = step.path.partition("?")[0]
        if step.method == "POST":
            path += f"/{step.body['metadata']['name']}"
        status, answer = self.sides[0].call("GET", path)
        return answer if status == 200 else None


def _gather_each_other(state: dict[str, Any]) -> bool:
    """Whether two roles of a server gather, each of which bears a label that roles are gathered by."""
    gathering = [role for role in state.values() if role[2]]
    return sum(bool(role[0]) for role in gathering) > 1


def _shown(step: Step, status: int, answer: Any) -> tuple[Any, ...]:
    """What is compared of an answer: words of refusals without the order of what they list."""
    if status == 403 and step.what == "who":
        # kube-apiserver first tries, and tells of, the way of impersonation that let the user in the last time.
        return status, answer.get("reason")
    if status >= 400:
        return (
            status,
            answer.get("reason"),
            sorted(str(answer.get("message")).replace("[", " ").replace("]", " ").split()),
        )
    match step.what:
        case "who":
            info = answer["status"]["userInfo"]
            if info["username"].startswith("system:node:"):
                return status, info["username"]  # groups differ by that way
            return (
                status,
                info["username"],
                sorted(info.get("groups") or ()),
                info.get("uid"),
                info.get("extra"),
            )
        case "may":
            return status, answer["status"]["allowed"]
    return (status,)


SERVED = (
    "--tls=off",
    "--authorization-mode=Node,RBAC",
    "--enable-admission-plugins=NodeRestriction",
    "--disable-admission-plugins=ServiceAccount",
)
"""How a server is started that worlds are played against."""


def against(folder: Path, chance: random.Random, steps: int, reference: str) -> list[str]:
    """Plays worlds against a server of its own, and a kube-apiserver where a kubeconfig with a token names one; answers
    what was wrong."""
    tokens = folder / "tokens.csv"
    tokens.touch(0o600)
    tokens.write_text('admin-token,admin,1,"system:masters"\n')
    target = Target(folder, (*SERVED, f"--token-file={tokens}"))
    sides: list[Side] = []
    try:
        sides.append(Side(f"http://127.0.0.1:{target.port}", "admin-token"))
        if reference:
            config = yaml.safe_load(Path(reference).read_text())
            sides.append(
                Side(config["clusters"][0]["cluster"]["server"], config["users"][0]["user"]["token"])
            )
        wrong = report(sides, chance.randrange(1 << 20), steps)
        if target.tracebacks():
            wrong.append(f"tracebacks in the log; the last: {target.last_traceback()}")
        return wrong
    finally:
        for side in sides:
            side.close()
        target.end()


def main() -> int:
    """Plays worlds of 500 steps; 1 where anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("sides", nargs="+", help="URL TOKEN, once or twice")
    parser.add_argument("--steps", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    sides = [Side(url, token) for url, token in zip(options.sides[::2], options.sides[1::2], strict=True)]
    return 1 if report(sides, options.seed, options.steps) else 0


def report(sides: Sequence[Side], seed: int, steps: int, each: int = 500) -> list[str]:
    """Plays worlds of so many steps each and prints a line for each; what was wrong."""
    wrong: list[str] = []
    done = allowed = laws = 0
    while done < steps:
        play = Play(World(seed, f"w{seed}"), sides)
        play.begin()
        counts = play.run(min(each, steps - done))
        play.end()
        for line in counts.wrong[:5]:
            print(f"    {line}")
        done, allowed, laws = done + counts.steps, allowed + counts.allowed, laws + counts.laws
        wrong += counts.wrong
        print(
            f"seed {seed}: {done} steps, {allowed} writes, {laws} held against the law, {len(wrong)} wrong",
            flush=True,
        )
        seed += 1
    return wrong


if __name__ == "__main__":
    sys.exit(main())
