"""Entries of ``--runtime-config``, as far as the packages know what they name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from apimachinery.server.catalog.options import OptionError

_ALL = ("api/all", "api/ga", "api/beta", "api/alpha")


def known_runtime_config(chosen: Mapping[str, bool], packages: Sequence[str]) -> Mapping[str, bool]:
    """``chosen``, whose keys all name something that a package describes. Raises OptionError."""
    entries = [key for key in chosen if key not in _ALL]
    if not entries:
        return chosen
    from apimachinery.server.catalog.served_package import ServedPackage

    versions: set[str] = set()
    resources: set[str] = set()
    for name in packages:
        for resource in ServedPackage(name).resources():
            version = resource.api_version
            for spelt in (version,) if resource.group else (version, f"core/{version}"):
                versions.add(spelt)
                resources.add(f"{spelt}/{resource.plural}")
    for key in entries:
        if key not in versions and key not in resources:
            near = get_close_matches(key, [*_ALL, *versions, *resources], 1)
            hint = (
                f"did you mean {near[0]}?" if near else "use api/all, GROUP/VERSION or GROUP/VERSION/RESOURCE"
            )
            raise OptionError(f"--runtime-config: {key!r} names nothing that is served; {hint}")
    return chosen
