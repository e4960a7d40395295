"""What comes and goes: lists of what is not there, definitions made again and again. Memory must come back."""

from __future__ import annotations

import argparse
import copy
import random
import time
from collections.abc import Iterator

from tests.attack.inputs import THING
from tests.attack.target import Target

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
HEADERS = {"Content-Type": "application/json"}
LISTS, DEFINITIONS = 20_000, 60


def lists_and_definitions(
    target: Target, chance: random.Random, options: argparse.Namespace
) -> Iterator[str]:
    """20,000 lists of absent namespaces; 60 definitions made, listed as a Table, and deleted."""
    connection = target.connect()
    before = target.resident()
    for number in range(LISTS):
        connection.request("GET", f"/api/v1/namespaces/n{number}-{chance.random()}/configmaps")
        connection.getresponse().read()
    if (grown := target.resident() - before) > 60:
        yield f"{grown:.0f} MB for {LISTS} lists of nothing"
    before = target.resident()
    definition = copy.deepcopy(THING)
    definition["metadata"]["name"] = "churns.attack.example.com"
    definition["spec"]["names"] = {"kind": "Churn", "plural": "churns"}
    for _ in range(DEFINITIONS):
        target.make(CRDS, definition)
        for accept in ("application/json", "application/json;as=Table;g=meta.k8s.io;v=v1"):
            until = time.monotonic() + 10
            while time.monotonic() < until:
                connection.request(
                    "GET", "/apis/attack.example.com/v1/namespaces/default/churns", headers={"Accept": accept}
                )
                answer = connection.getresponse()
                answer.read()
                if answer.status == 200:
                    break
                time.sleep(0.01)
            else:
                yield "a definition was not served within 10 s"
        connection.request("DELETE", f"{CRDS}/churns.attack.example.com")
        connection.getresponse().read()
        while target.ask("GET", f"{CRDS}/churns.attack.example.com")[0] == 200:
            time.sleep(0.01)
    if (grown := target.resident() - before) > 60:
        yield f"{grown:.0f} MB for {DEFINITIONS} definitions made again"
