"""Apply configurations: ``<group_version>/apply.py``, the models again with every field optional.

A server-side apply says only what its sender wants to own, so what a whole object must have an apply configuration
may leave out. Names and documentation are those of the models; apiVersion and kind are filled in. Lists are left
out: nobody applies one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from kubewright.emit.code.class_plans import ClassPlan, ModulePlan
from kubewright.emit.code.layout import lay_out
from kubewright.emit.code.render import header
from kubewright.emit.interface import Options
from kubewright.emit.python.code.struct_classes import StructClasses
from kubewright.ir.api import Api, Emitter, File


def emitter(options: Options) -> Emitter:
    """The emitter of ``apply.py``; nothing where the models are of another flavour than the client's."""
    return Apply(options)


@dataclass(frozen=True, slots=True)
class Apply:
    """One module of apply configurations for each module of models."""

    options: Options
    name: str = "apply"

    def emit(self, api: Api) -> Iterable[File]:
        """``apply.py`` of each group-version."""
        if self.options.models != "msgspec":
            return
        classes = StructClasses(self.options)
        first_line = header(self.options.origins)
        for plan in lay_out(api).modules:
            title = f"Apply configurations of {plan.title}: models whose every field may be left out."
            yield File(
                f"{plan.name}/apply.py", classes.module_text(_loosen(plan), first_line, "apply", title)
            )


def _loosen(plan: ModulePlan) -> ModulePlan:
    return replace(plan, classes=[_optional(c) for c in plan.classes if not c.is_list])


def _optional(plan: ClassPlan) -> ClassPlan:
    return replace(
        plan,
        keeps_origin=False,
        fields=tuple(replace(f, required=False, factory="") for f in plan.fields),
    )
