"""Checks of webhooks: what they are called for, where they are, and which reviews they understand."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any
from urllib.parse import urlsplit

from apimachinery.kinds.admissionregistration.admission import match_conditions, unusable
from apimachinery.kinds.admissionregistration.policy_expressions import (
    BOOL,
    Compiler,
    ExpressionFault,
)
from apimachinery.kinds.checks import Errors
from apimachinery.kinds.fields import (
    Json,
    items,
    numbered,
    of_missing,
    struct,
)
from apimachinery.meta import names
from apimachinery.meta.field_errors import (
    duplicate,
    invalid_value,
    not_supported,
)
from apimachinery.meta.field_errors import required as required_error
from apimachinery.meta.urls import url_fault

_NO_EFFECTS: tuple[str, ...] = ("None", "NoneOnDryRun")
_EFFECTS = ("None", "NoneOnDryRun", "Some", "Unknown")
_VERSIONS = ("v1", "v1beta1")


def webhooks(value: Json, path: str, old: Json | None = None) -> Errors:
    """What webhooks promise. What all stored ones do not promise, no changed one needs to."""
    del path
    before = None if old is None else list(items(old, "webhooks"))
    effects = _NO_EFFECTS
    if before is not None and any(hook.get("sideEffects") not in _NO_EFFECTS for hook in before):
        effects = _EFFECTS
    known = before is None or all(_is_understood(hook) for hook in before)
    given = [hook.get("name") or "" for hook in before or ()]
    unique = len(set(given)) == len(given)
    now = [hook.get("matchConditions") or [] for hook in items(value, "webhooks")]
    kept = before is not None and now == [hook.get("matchConditions") or [] for hook in before]
    stored = {
        str(each.get("expression") or "").strip()
        for hook in before or ()
        for each in items(hook, "matchConditions")
    }
    seen = set()
    for index, hook in numbered(value, "webhooks"):
        place, name = f"webhooks[{index}]", hook.get("name")
        if hook.get("sideEffects") is None:
            yield required_error(f"{place}.sideEffects", f"must specify one of {', '.join(effects)}")
        elif hook["sideEffects"] not in effects:
            yield not_supported(f"{place}.sideEffects", hook["sideEffects"], effects)
        yield from _review_versions(
            hook.get("admissionReviewVersions") or [], f"{place}.admissionReviewVersions", known
        )
        if unique and name and name in seen:
            yield duplicate(f"{place}.name", name)
        seen.add(name)
        if not kept:
            yield from match_conditions(hook.get("matchConditions"), f"{place}.matchConditions")
            yield from _compiled(hook, f"{place}.matchConditions", stored)


def _compiled(hook: Json, path: str, stored: AbstractSet[Any]) -> Errors:
    """Conditions are expressions that compile; those stored before have been compiled once."""
    compiler = None
    for index, condition in numbered(hook, "matchConditions"):
        source = str(condition.get("expression") or "").strip()
        if not source or source in stored:
            continue
        compiler = compiler or Compiler(has_params=False)
        try:
            compiler.compile(source, BOOL)
        except ExpressionFault as fault:
            yield unusable(f"{path}[{index}].expression", source, fault)


def _is_understood(hook: Json) -> bool:
    given = hook.get("admissionReviewVersions") or ()
    return not given or any(version in _VERSIONS for version in given)


def _review_versions(given: list[Any], path: str, known: bool) -> Errors:
    """A webhook understands at least one version of reviews that the server speaks."""
    if not given:
        yield required_error(path, "must specify one of v1, v1beta1")
        return
    seen = set()
    for index, version in enumerate(given):
        if version in seen:
            yield invalid_value(f"{path}[{index}]", version, "duplicate version")
            continue
        seen.add(version)
        for detail in names.dns1035_label_faults(version) if isinstance(version, str) else ():
            yield invalid_value(f"{path}[{index}]", version, detail)
    if known and not seen & set(_VERSIONS):
        yield invalid_value(path, given, "must include at least one of v1, v1beta1")


@of_missing
def client_config(value: Any, path: str) -> Errors:
    """Where a webhook is: a URL or a service, not both."""
    config = value if isinstance(value, dict) else {}
    url, service = config.get("url"), struct(config, "service")
    if (url is None) == (service is None):
        yield required_error(path, "exactly one of url or service is required")
    elif url is not None:
        yield from _webhook_url(str(url), f"{path}.url")
    elif service is not None:
        # kube-apiserver 1.36 names the one where it misses the other.
        if not service.get("name"):
            yield required_error(f"{path}.service.namespace")
        if not service.get("namespace"):
            yield required_error(f"{path}.service.name")
        if service.get("port") is not None and not 1 <= service["port"] <= 65535:
            yield invalid_value(
                f"{path}.service.port",
                service["port"],
                "port is not valid: must be between 1 and 65535, inclusive",
            )
        if service.get("path"):
            yield from _service_path(str(service["path"]), f"{path}.service.path")


def _service_path(where: str, path: str) -> Errors:
    """A path whose parts are domains."""
    if where == "/":
        return
    if not where.startswith("/"):
        yield invalid_value(path, where, "must start with a '/'")
    for index, part in enumerate(where[1:].removesuffix("/").split("/")):
        if not part:
            yield invalid_value(path, where, f"segment[{index}] may not be empty")
            continue
        for detail in names.dns1123_subdomain_faults(part):
            yield invalid_value(path, where, f"segment[{index}]: {detail}")


def _webhook_url(url: str, path: str) -> Errors:
    form = "; desired format: https://host[/path]"
    problem = url_fault(url)
    try:
        parts = urlsplit(url)
    except ValueError as fault:
        problem = problem or str(fault)
    if problem:
        yield required_error(path, f"url must be a valid URL: {problem}{form}")
        return
    if parts.scheme != "https":
        yield invalid_value(path, parts.scheme, f"'https' is the only allowed URL scheme{form}")
    if not parts.netloc:
        yield invalid_value(path, parts.netloc, f"host must be specified{form}")
    if parts.username is not None:
        yield invalid_value(path, parts.username, "user information is not permitted in the URL")
    if parts.fragment:
        yield invalid_value(path, parts.fragment, "fragments are not permitted in the URL")
    if parts.query:
        yield invalid_value(path, parts.query, "query parameters are not permitted in the URL")
