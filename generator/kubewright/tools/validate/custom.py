"""CustomResourceDefinitions judged, and the kinds that they describe.

Nothing else imports this at its top: CEL and the rules of CRDs would take more time at the start of a run than all
else together, and most runs meet no custom resource.
"""

from __future__ import annotations

from dataclasses import dataclass

from apimachinery.cel.schemas.crd import CompiledRules, compile_rules
from apimachinery.crd import check_crd, default_crd, prepare_crd_for_create
from apimachinery.crd.objects import ObjectValidation, validate_custom_resource
from apimachinery.meta.field_errors import FieldError
from apimachinery.meta.json import Json
from apimachinery.schema.custom import CustomSchema, compile_custom
from kubewright.tools.validate.check import copied
from kubewright.tools.validate.unusable import UnusableSchema


@dataclass(frozen=True, slots=True)
class CustomKind:
    """A kind of a CRD."""

    schema: CustomSchema
    rules: CompiledRules
    namespaced: bool
    scale: Json | None
    drops_status: bool
    """Whether a server drops the status of a new object, for it is written through its subresource."""

    def validate(self, obj: Json) -> ObjectValidation:
        """What a server says to the creation of ``obj``, defaults filled in."""
        return validate_custom_resource(
            obj, None, self.schema, rules=self.rules, namespaced=self.namespaced, scale=self.scale
        )


def compile_kind(crd: Json, api_version: str) -> CustomKind | UnusableSchema:
    """The kind of ``crd`` in one of its versions, or why there is none."""
    crd = copied(crd)
    spec = crd["spec"]
    try:
        default_crd(crd)
        prepare_crd_for_create(crd)
        faults = check_crd(crd)
    except (AttributeError, TypeError, ValueError, KeyError) as error:
        return UnusableSchema(f"the CRD has values of a wrong type ({error})")
    if faults:
        return UnusableSchema(f"its CRD is refused: {faults[0]}")
    version = next(v for v in spec["versions"] if f"{spec['group']}/{v['name']}" == api_version)
    schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    if spec.get("preserveUnknownFields") is True:
        schema = {**schema, "x-kubernetes-preserve-unknown-fields": True}
    return CustomKind(
        schema=compile_custom(schema),
        rules=compile_rules(schema),
        namespaced=spec.get("scope") == "Namespaced",
        scale=(version.get("subresources") or {}).get("scale"),
        drops_status=(version.get("subresources") or {}).get("status") is not None,
    )


def judge_crd(crd: Json) -> list[FieldError]:
    """What a server says to the creation of a CRD; its defaults are filled in, in place."""
    _read_nulls(crd)
    default_crd(crd)
    prepare_crd_for_create(crd)
    return check_crd(crd)


def _read_nulls(crd: Json) -> None:
    """Reads a null where a CRD has a struct as an empty one, as Go does."""
    spec = crd["spec"] = crd.get("spec") or {}
    spec["names"] = spec.get("names") or {}
    spec["versions"] = [version or {} for version in spec.get("versions") or []]
