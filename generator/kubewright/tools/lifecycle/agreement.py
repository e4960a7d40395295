"""Whether a plan and the specs that it is of say the same: which versions are served, deprecated and stored.

A plan tells of many releases, specs of one: that of ``--release``, or else the last that the plan speaks of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kubewright.diagnostics import Diagnostic, Severity
from kubewright.ir.api import Resource
from kubewright.ir.versions import join_api_version
from kubewright.source.lifecycle import Key
from kubewright.tools.lifecycle.plan import PlanEntry, ReleasePlan
from kubewright.tools.lifecycle.policy import lines_of
from kubewright.tools.lifecycle.releases import Release
from kubewright.tools.lifecycle.timeline import stored_in


def disagreements(
    plan: ReleasePlan, resources: Iterable[Resource], release: Release | None = None
) -> list[Diagnostic]:
    """What plan and specs say differently of a release; of groups that the plan does not name, nothing."""
    groups = {entry.group for entry in plan.entries}
    specs = {
        (join_api_version(each.group, each.version), each.kind): each
        for each in resources
        if each.group in groups
    }
    release = release or plan.horizon
    return [] if release is None else [*_Agreement(plan, specs, release).faults()]


@dataclass(frozen=True, slots=True)
class _Agreement:
    plan: ReleasePlan
    specs: dict[Key, Resource]
    release: Release

    def faults(self) -> Iterator[Diagnostic]:
        entries = {entry.key: entry for entry in self.plan.entries}
        for key, resource in sorted(self.specs.items()):
            if key not in entries and resource.served:
                said = f"{key[1]} of {key[0]} is in the specs, and the plan says nothing of it"
                hint = "add its entry to the plan: `introduced`"
                yield Diagnostic("P014", Severity.ERROR, said, resource.location, hint)
        for entry in self.plan.entries:
            yield from self._entry(entry, self.specs.get(entry.key))
        for line in lines_of(self.plan.entries).values():
            if any(entry.storage is not None for entry in line):
                yield from self._stored(line)

    def _entry(self, entry: PlanEntry, resource: Resource | None) -> Iterator[Diagnostic]:
        served = entry.is_served(self.release)
        if not served and resource is not None and resource.served:
            when = f"is gone since {entry.removed}" if entry.removed else ""
            if self.release < entry.introduced:
                when = f"comes in {entry.introduced}"
            yield self._fault(
                resource, entry, f"{entry.name} {when} by the plan, and the specs of {self.release} serve it"
            )
        elif served and (resource is None or not resource.served):
            lack = "do not serve it" if resource is not None else "do not have it"
            yield self._fault(
                None, entry, f"{entry.name} is served in {self.release} by the plan, and the specs {lack}"
            )
        elif served and resource is not None:
            is_old = entry.deprecated is not None and entry.deprecated <= self.release
            if is_old != resource.deprecated:
                planned = f"is deprecated since {entry.deprecated}" if is_old else "is not deprecated"
                if not is_old and entry.deprecated is not None:
                    planned = f"is not deprecated before {entry.deprecated}"
                other = "do not say so" if is_old else "say that it is deprecated"
                yield self._fault(
                    resource,
                    entry,
                    f"{entry.name} {planned} by the plan, and the specs of {self.release} {other}",
                )

    def _stored(self, line: list[PlanEntry]) -> Iterator[Diagnostic]:
        planned = stored_in(line, self.release)
        known = [(entry, self.specs[entry.key]) for entry in line if entry.key in self.specs]
        stored = next(((entry, each) for entry, each in known if each.storage), None)
        if planned is not None and stored is not None and stored[0] is not planned:
            said = f"{planned.kind} is stored as {planned.version} in {self.release} by the plan"
            yield self._fault(stored[1], planned, f"{said}, and as {stored[0].version} by the specs")

    def _fault(self, resource: Resource | None, entry: PlanEntry, said: str) -> Diagnostic:
        hint = "change one of them, or name the release of the specs with --release"
        if resource is None:
            return Diagnostic("P014", Severity.ERROR, said, entry.location, hint)
        return Diagnostic(
            "P014", Severity.ERROR, said, resource.location, f"the plan: {entry.location}; {hint}"
        )
