"""The areas that conversations are drawn from, and how often each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from tests.differential.conversation import Conversation
from tests.differential.draw import (
    access,
    apply,
    builtin,
    control,
    custom,
    definitions,
    discovery,
    expressions,
    kubectl,
    listing,
    policy,
    rest,
    state,
    subresources,
    wire,
)
from tests.differential.draw.changed import Changed
from tests.differential.draw.manifests import Manifests
from tests.differential.draw.words import Dice

Draw = Callable[[Dice, str], Conversation]

AREAS: dict[str, tuple[int, Draw]] = {
    "rest": (24, rest.draw),
    "state": (14, state.draw),
    "apply": (22, apply.draw),
    "crd": (18, custom.draw),
    "definitions": (12, definitions.draw),
    "builtin": (12, builtin.draw),
    "wire": (8, wire.draw),
    "discovery": (3, discovery.draw),
    "control": (8, control.draw),
    "policy": (5, policy.draw),
    "expressions": (4, expressions.draw),
    "access": (8, access.draw),
    "listing": (10, listing.draw),
    "subresources": (12, subresources.draw),
}


def conversations(
    seed: str, only: list[str], corpus: list[Path], *, commands: bool = False, manifests: Path | None = None
) -> Iterator[Conversation]:
    """Endless conversations of a seed; ``corpus`` are folders of scenarios to change, ``commands`` is whether there is a
    kubectl, ``manifests`` a folder of them."""
    areas = dict(AREAS)
    if commands:
        areas["kubectl"] = (10, kubectl.draw)
    if corpus:
        areas["changed"] = (25, Changed(corpus).draw)
    if manifests:
        real = Manifests(manifests)
        areas["manifests"] = (20, real.draw)
        if commands:
            areas["commands"] = (10, real.commands)
    if only:
        areas = {name: areas[name] for name in only}
    dice = Dice(f"{seed}")
    names = list(areas)
    weights = [areas[name][0] for name in names]
    number = 0
    while True:
        number += 1
        area = dice.choices(names, weights)[0]
        own = Dice(f"{seed} {area} {number}")
        conversation = areas[area][1](own, f"{area}-{number}")
        yield conversation
