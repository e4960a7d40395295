"""Every rule that kube-apiserver holds a CustomResourceDefinition to, offline and with the same causes.

The main path of the checks: metadata, then the spec part by part, then the stored versions, the approval of
protected groups, and preserveUnknownFields. The rules themselves are in the files next to this one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from apimachinery.crd.default_rules import default_faults
from apimachinery.crd.form import CheckedForm, Parts, Schema, TooDeepError, Version, read_form
from apimachinery.crd.parts import (
    approval_faults,
    bundle_faults,
    choice_faults,
    column_faults,
    conversion_faults,
    names_faults,
    selectable_faults,
    subresource_faults,
    warning_faults,
)
from apimachinery.crd.printed import FIELD_NAMES, keywords_in_order, printed_schema, printed_versions
from apimachinery.crd.rules import rule_faults
from apimachinery.crd.schema_rules import SchemaRuleOptions, has_loose_keys, has_loose_sets, schema_faults
from apimachinery.crd.schema_walk import any_node
from apimachinery.crd.structural import structural_faults, unreadable
from apimachinery.meta.field_errors import FieldError, forbidden, invalid_value, required
from apimachinery.meta.names import dns1035_label_faults, dns1123_subdomain_faults, dns_subdomain_name
from apimachinery.meta.object_meta import immutable, validate_object_meta, validate_object_meta_update

_TYPES = frozenset({"array", "boolean", "integer", "number", "object", "string"})
_ROOT_WITH_STATUS = tuple(
    (
        "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength "
        "Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example "
        "XPreserveUnknownFields XValidations"
    ).split()
)


_STRICT = SchemaRuleOptions()


@dataclass(frozen=True, slots=True)
class EnabledRules:
    """Which rules are on: all for a new CRD; for an update not those that the stored one breaks."""

    schema_required: bool = True
    structural: bool = True
    pruned_defaults: bool = True
    known_reviews: bool = True
    bad_bundle_allowed: bool = True
    schema: SchemaRuleOptions = _STRICT


def check_crd(crd: dict[str, Any], old: dict[str, Any] | None = None) -> list[FieldError]:
    """The faults of a CRD (defaulted, with its status prepared), in kube-apiserver's order.

    With ``old``, the stored CRD, the rules of an update: immutable fields, and no rule newly held against
    what the stored one breaks already. CEL rules are included.
    """
    try:
        form = read_form(crd)
        old_form = None if old is None else read_form(old)
    except TooDeepError as error:
        # Nothing else can be judged on a form that cannot be read.
        return [forbidden("spec.validation.openAPIV3Schema", str(error))]
    meta = crd.get("metadata") or {}
    if old is None or old_form is None:
        faults = validate_object_meta(meta, namespaced=False, name_rule=_name_rule(form))
        faults += _spec_faults(form, EnabledRules(), None)
    else:
        faults = validate_object_meta_update(meta, old.get("metadata") or {})
        faults += _spec_faults(form, _rules_for_update(old_form, is_established(old)), old_form)
        faults += _immutable_faults(form, old_form, is_established(old))
    status = crd.get("status") or {}
    faults += names_faults(status.get("acceptedNames") or {}, "status.acceptedNames")
    faults += _stored_faults(status.get("storedVersions"), form.versions)
    annotations = meta.get("annotations") or {}
    old_annotations = None if old is None else (old.get("metadata") or {}).get("annotations") or {}
    faults += approval_faults(form.group, annotations, old_annotations)
    if form.preserve and not (old_form is not None and old_form.preserve):
        instead = "x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        detail = f"cannot set to true, set {instead}"
        faults.append(invalid_value("spec.preserveUnknownFields", True, detail))
    return faults


def check_crd_status(crd: dict[str, Any], old: dict[str, Any]) -> list[FieldError]:
    """The faults of an update of the status subresource."""
    names = (crd.get("status") or {}).get("acceptedNames") or {}
    meta, old_meta = crd.get("metadata") or {}, old.get("metadata") or {}
    return [*validate_object_meta_update(meta, old_meta), *names_faults(names, "status.acceptedNames")]


def is_established(crd: dict[str, Any]) -> bool:
    """Does the CRD's status say that it is established."""
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return any(each.get("type") == "Established" and each.get("status") == "True" for each in conditions)


def _name_rule(form: CheckedForm) -> Any:
    wanted = f"{form.names.get('plural') or ''}.{form.group}"

    def rule(name: str, prefix: bool) -> list[str]:
        faults = dns_subdomain_name(name, prefix)
        return faults if name == wanted else [*faults, 'must be spec.names.plural+"."+spec.group']

    return rule


def _rules_for_update(old: CheckedForm, established: bool) -> EnabledRules:
    schemas = old.schemas()
    webhook = (old.conversion or {}).get("webhook") or {}
    reviews = webhook.get("conversionReviewVersions") or []
    bundle = (webhook.get("clientConfig") or {}).get("caBundle")
    # kube-apiserver's ratcheting: an update is not refused for what the stored CRD breaks already.
    return EnabledRules(
        schema_required=_has_schema(old.common) or all(map(_has_schema, old.versions)),
        structural=not any(_is_loose(each) for each in schemas),
        pruned_defaults=not any(_has_unpruned_defaults(each) for each in schemas),
        known_reviews=not reviews or bool({"v1", "v1beta1"} & set(reviews)),
        bad_bundle_allowed=not established or (bool(bundle) and any(bundle_faults(str(bundle), ""))),
        schema=SchemaRuleOptions(
            valid_types=not any(any_node(each, _has_invalid_type) for each in schemas),
            atomic_sets=not any(any_node(each, has_loose_sets) for each in schemas),
            map_keys=not any(any_node(each, has_loose_keys) for each in schemas),
        ),
    )


def _has_schema(parts: Parts) -> bool:
    return parts.schema is not None


def _has_invalid_type(schema: Schema) -> bool:
    return bool(schema.get("type")) and schema["type"] not in _TYPES


def _is_loose(schema: Schema) -> bool:
    return unreadable(schema) is not None or bool(structural_faults(schema, ""))


def _has_unpruned_defaults(schema: Schema) -> bool:
    # Defaults of a schema that is not structural cannot be judged.
    if _is_loose(schema):
        return False
    return not default_faults(schema, "", pruned=False) and bool(default_faults(schema, ""))


def _spec_faults(form: CheckedForm, rules: EnabledRules, old: CheckedForm | None) -> list[FieldError]:
    return list(_each_spec_fault(form, rules, old))


def _each_spec_fault(form: CheckedForm, rules: EnabledRules, old: CheckedForm | None) -> Iterator[FieldError]:
    yield from _group_faults(form.group)
    yield from choice_faults(form.scope, ("Cluster", "Namespaced"), "spec.scope")
    yield from _missing_schema_faults(form, rules)
    if form.preserve and any(any_node(each, _has_default) for each in form.schemas()):
        detail = "must be false in order to use defaults in the schema"
        yield invalid_value("spec.preserveUnknownFields", True, detail)
    # Schemas of CRDs that preserve unknown fields need not be structural, unless they have defaults.
    structural = (
        rules.structural or not form.preserve or any(any_node(each, _has_default) for each in form.schemas())
    )
    for index, version in enumerate(form.versions):
        yield from _version_faults(form, version, f"spec.versions[{index}]", rules, structural, old)
    names = [version.name for version in form.versions]
    shown = None if form.no_versions else printed_versions(form.versions)
    if len(set(names)) < len(names):
        yield invalid_value("spec.versions", shown, "must contain unique version names")
    if sum(version.storage for version in form.versions) != 1:
        detail = "must have exactly one version marked as storage version"
        yield invalid_value("spec.versions", shown, detail)
    if form.version and (faults := dns1035_label_faults(form.version)):
        yield invalid_value("spec.version", form.version, ",".join(faults))
    for name in ("plural", "singular", "kind", "listKind"):
        if not form.names.get(name):
            yield required(f"spec.names.{name}")
    yield from names_faults(form.names, "spec.names")
    yield from _part_faults(form, form.common, "spec", "validation", rules, structural, old)
    strategy = (form.conversion or {}).get("strategy") or ""
    if form.conversion is not None and strategy != "None" and form.preserve:
        yield invalid_value(
            "spec.conversion.strategy", strategy, "must be None if spec.preserveUnknownFields is true"
        )
    yield from conversion_faults(
        form.conversion,
        "spec.conversion",
        known_reviews=rules.known_reviews,
        bad_bundle_allowed=rules.bad_bundle_allowed,
    )


def _has_default(schema: Schema) -> bool:
    return "default" in schema


def _group_faults(group: str) -> Iterator[FieldError]:
    if not group:
        yield required("spec.group")
    elif faults := dns1123_subdomain_faults(group):
        yield invalid_value("spec.group", group, ",".join(faults))
    elif "." not in group:
        yield invalid_value("spec.group", group, "should be a domain with at least one dot")


def _missing_schema_faults(form: CheckedForm, rules: EnabledRules) -> Iterator[FieldError]:
    if form.common.schema is not None:
        return
    for index, version in enumerate(form.versions):
        at = f"spec.versions[{index}].schema.openAPIV3Schema"
        if version.schema is None and rules.schema_required:
            yield required(at)
        elif version.schema is None and version.served and not form.preserve:
            yield required(at, "because otherwise all fields are pruned")


def _version_faults(
    form: CheckedForm,
    version: Version,
    field: str,
    rules: EnabledRules,
    structural: bool,
    old: CheckedForm | None,
) -> Iterator[FieldError]:
    if faults := dns1035_label_faults(version.name):
        yield invalid_value(f"{field}.name", version.name, ",".join(faults))
    yield from warning_faults(version.deprecated, version.warning, f"{field}.deprecationWarning")
    yield from _part_faults(form, version, field, "schema", rules, structural, old)


def _part_faults(
    form: CheckedForm,
    parts: Parts,
    field: str,
    holder: str,
    rules: EnabledRules,
    structural: bool,
    old: CheckedForm | None,
) -> Iterator[FieldError]:
    """What is at the top or at one version: schema, subresources, columns, selectable fields."""
    if parts.schema is not None:
        status = _has_status(form, parts)
        yield from _validation_faults(
            parts.schema, f"{field}.{holder}", status, rules, structural, _stored(form, parts, old)
        )
    yield from subresource_faults(parts.subresources, f"{field}.subresources")
    yield from column_faults(parts.columns, f"{field}.additionalPrinterColumns")
    if parts.selectable:
        at = f"{field}.selectableFields"
        schema = form.common.schema if parts.schema is None and parts is form.common else parts.schema
        if schema is None:
            detail = (
                "may only be set when validations.schema is included"
                if parts is form.common
                else "may only be set when `version.schema.openAPIV3Schema` is not included"
            )
            yield invalid_value(at, "", detail)
        elif unreadable(schema) is None:
            # Unchanged fields may exceed a limit that is newer than they are.
            stored = _stored_part(parts, old)
            unchanged = stored is not None and stored.selectable == parts.selectable
            yield from selectable_faults(parts.selectable, schema, at, any_number=unchanged)


def _has_status(form: CheckedForm, parts: Parts) -> bool:
    """Is the status subresource on where this schema holds."""
    if isinstance(parts, Version):
        held = (
            parts.subresources
            if any(each.subresources for each in form.versions)
            else form.common.subresources
        )
        return (held or {}).get("status") is not None
    each_held = (each.subresources for each in (form.common, *form.versions))
    return any((held or {}).get("status") is not None for held in each_held)


def _stored(form: CheckedForm, parts: Parts, old: CheckedForm | None) -> Schema | None:
    """The stored schema of the same version, None where it is another or there is none."""
    if old is None:
        return None
    if all(each.schema is None for each in old.versions):
        return old.common.schema  # that of every version, new ones too
    name = parts.name if isinstance(parts, Version) else form.version
    for each in old.versions:
        if each.name == name:
            return each.schema if each.schema is not None else old.common.schema
    return None


def _stored_part(parts: Parts, old: CheckedForm | None) -> Parts | None:
    """The stored top, or the stored version of that name."""
    if old is None:
        return None
    if not isinstance(parts, Version):
        return old.common
    return next((each for each in old.versions if each.name == parts.name), None)


def _validation_faults(
    schema: Schema, field: str, status: bool, rules: EnabledRules, structural: bool, stored: Schema | None
) -> Iterator[FieldError]:
    at = f"{field}.openAPIV3Schema"
    found: list[FieldError] = list(_root_faults(schema, at, status))
    said: str | None = None
    sound = False
    if structural:
        said = unreadable(schema)
        if said is None:
            breaches = structural_faults(schema, at) or default_faults(
                schema, at, pruned=rules.pruned_defaults
            )
            found += breaches
            sound = not breaches
    broken = schema_faults(schema, at, rules.schema)
    found += broken
    # CEL rules are compiled only where nothing else is wrong with their schema.
    rules_found = rule_faults(schema, at, broken, sound=sound, unchanged=stored == schema)
    found += rules_found.texts
    found += rules_found.compiled
    # Shown only if the other checks found nothing, since it repeats what they say.
    if not found and said is not None:
        found.append(invalid_value(at, "", said))
    yield from found


def _root_faults(schema: Schema, field: str, status: bool) -> Iterator[FieldError]:
    if status:
        for keyword in keywords_in_order(schema):
            name = FIELD_NAMES[keyword]
            if name == "Type":
                if schema["type"] != "object":
                    detail = (
                        'only "object" is allowed as the type at the root of the schema if the status subresource '
                        "is enabled"
                    )
                    yield invalid_value(f"{field}.type", schema["type"], detail)
                    break
            elif name not in _ROOT_WITH_STATUS:
                allowed = f"[{' '.join(_ROOT_WITH_STATUS)}]"
                detail = (
                    f"only {allowed} fields are allowed at the root of the schema "
                    "if the status subresource is enabled"
                )
                yield invalid_value(field, printed_schema(schema), detail)
                break
    if "nullable" in schema:
        yield forbidden(f"{field}.nullable", "nullable cannot be true at the root")


def _stored_faults(stored: list[str] | None, versions: list[Version]) -> Iterator[FieldError]:
    field = "status.storedVersions"
    if not stored:
        yield invalid_value(field, stored, "must have at least one stored version")
        return
    left = {name: index for index, name in enumerate(stored)}
    for version in versions:  # each stored version is found once: a second version of that name does not
        if left.pop(version.name, None) is None and version.storage:
            yield invalid_value(field, stored, f"must have the storage version {version.name}")
    for index, name in enumerate(stored):
        if left.get(name) == index:
            detail = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {name} and removes "
                f"{name} from status.storedVersions"
            )
            yield invalid_value(f"{field}[{index}]", name, detail)


def _immutable_faults(form: CheckedForm, old: CheckedForm, established: bool) -> Iterator[FieldError]:
    # A scope or kind that was never served may still be corrected.
    if established:
        yield from immutable(form.scope, old.scope, "spec.scope")
        yield from immutable(form.names.get("kind") or "", old.names.get("kind") or "", "spec.names.kind")
    yield from immutable(form.group, old.group, "spec.group")
    yield from immutable(form.names.get("plural") or "", old.names.get("plural") or "", "spec.names.plural")
