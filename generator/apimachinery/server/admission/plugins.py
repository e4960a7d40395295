"""Which admission plugins a server runs: names, order and defaults are kube-apiserver's.

``--enable-admission-plugins`` adds to the defaults and ``--disable-admission-plugins`` takes away from them; where both
name a plugin, it is off. The order in which they are named means nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field

from apimachinery.access.control import Access
from apimachinery.access.escalation import Escalation
from apimachinery.server.admission.builtin import certificates
from apimachinery.server.admission.builtin.access import CreateRights, RoleEscalation
from apimachinery.server.admission.builtin.always import AlwaysAdmit, AlwaysDenyPlugin
from apimachinery.server.admission.builtin.claim_resize import PersistentVolumeClaimResize
from apimachinery.server.admission.builtin.default_classes import DefaultIngressClass, DefaultStorageClass
from apimachinery.server.admission.builtin.default_tolerations import DefaultTolerationSeconds
from apimachinery.server.admission.builtin.device_access import DeviceAdminAccess
from apimachinery.server.admission.builtin.external_addresses import DenyServiceExternalIPs
from apimachinery.server.admission.builtin.in_use_protection import StorageObjectInUseProtection
from apimachinery.server.admission.builtin.limit_ranger import LimitRanger
from apimachinery.server.admission.builtin.node_restriction import NodeRestriction
from apimachinery.server.admission.builtin.node_taints import TaintNodesByCondition
from apimachinery.server.admission.builtin.owner_references import OwnerReferencesPermissionEnforcement
from apimachinery.server.admission.builtin.pod_placement import (
    ExtendedResourceToleration,
    LimitPodHardAntiAffinityTopology,
    PodNodeSelector,
    PodTolerationRestriction,
)
from apimachinery.server.admission.builtin.pod_resize import NodeDeclaredFeatureValidator, PodResizeValidator
from apimachinery.server.admission.builtin.pod_security import PodSecurity
from apimachinery.server.admission.builtin.priority import Priority
from apimachinery.server.admission.builtin.pull_images import AlwaysPullImages
from apimachinery.server.admission.builtin.resource_quota import Charges, ResourceQuota, StatusWriter
from apimachinery.server.admission.builtin.runtime_class import RuntimeClass
from apimachinery.server.admission.builtin.service_account import ServiceAccount
from apimachinery.server.admission.builtin.topology_labels import PodTopologyLabels
from apimachinery.server.admission.interface import Plugin
from apimachinery.server.admission.namespaces import (
    FindPhase,
    NamespaceAutoProvision,
    NamespaceExists,
    NamespaceLifecycle,
)
from apimachinery.server.admission.policies.mutating_policies import MutatingPolicies
from apimachinery.server.admission.policies.policies import Policies
from apimachinery.server.admission.policies.validating_policies import ValidatingPolicies
from apimachinery.server.admission.webhooks.mutating_webhooks import MutatingWebhooks
from apimachinery.server.admission.webhooks.validating_webhooks import ValidatingWebhooks
from apimachinery.server.admission.webhooks.webhook_configurations import ConfiguredWebhooks
from apimachinery.server.catalog.catalog import Catalog
from apimachinery.server.catalog.options import OptionError
from apimachinery.server.network.webhook_calls import WebhookCalls
from apimachinery.storage.watch_cache import WatchCache


@dataclass(frozen=True, slots=True)
class Around:
    """What plugins are made of. ``namespaces`` asks for those of another server, where this one has none;
    ``toleration_seconds`` are for nodes not ready and out of reach. ``writer`` is called with the first request, as a
    writer is made of plugins; ``charges`` are shared with the controller of quotas."""

    catalog: Catalog
    cache: WatchCache
    access: Access
    calls: WebhookCalls
    namespaces: FindPhase | None = None
    toleration_seconds: tuple[int, int] = (300, 300)
    charges: Charges = field(default_factory=Charges)
    writer: Callable[[], StatusWriter] | None = None
    create_namespace: Callable[[str], Awaitable[None]] | None = None


@dataclass(frozen=True, slots=True)
class NamedPlugin:
    """A plugin that may be switched on and off; ``default`` where it is on in kube-apiserver.

    ``make`` is None for what this server has not: where ``lacks`` is empty it does nothing there either, as its feature
    gate is off, else it needs what that says.
    """

    name: str
    make: Callable[[Around], Plugin] | None = None
    default: bool = True
    lacks: str = ""


def _owner_references(around: Around) -> Plugin:
    return OwnerReferencesPermissionEnforcement(around.catalog, around.access.authorizer)


def _webhooks(kind: str, around: Around) -> ConfiguredWebhooks:
    return ConfiguredWebhooks(kind, around.catalog, around.cache, around.access, around.calls)


CONFIGURED = "it needs --admission-control-config-file, which this server does not have"
PLUGINS = (
    NamedPlugin("AlwaysAdmit", lambda around: AlwaysAdmit(), default=False),
    NamedPlugin(
        "NamespaceAutoProvision",
        lambda around: NamespaceAutoProvision(around.cache, around.create_namespace),
        default=False,
    ),
    NamedPlugin("NamespaceLifecycle", lambda around: NamespaceLifecycle(around.cache, around.namespaces)),
    NamedPlugin("NamespaceExists", lambda around: NamespaceExists(around.cache), default=False),
    NamedPlugin(
        "LimitPodHardAntiAffinityTopology", lambda around: LimitPodHardAntiAffinityTopology(), default=False
    ),
    NamedPlugin("LimitRanger", lambda around: LimitRanger(around.cache)),
    NamedPlugin("ServiceAccount", lambda around: ServiceAccount(around.cache)),
    NamedPlugin(
        "NodeRestriction",
        lambda around: NodeRestriction(around.cache, around.access.authorizer),
        default=False,
    ),
    NamedPlugin("TaintNodesByCondition", lambda around: TaintNodesByCondition()),
    NamedPlugin("AlwaysPullImages", lambda around: AlwaysPullImages(), default=False),
    NamedPlugin("ImagePolicyWebhook", default=False, lacks=CONFIGURED),
    NamedPlugin("PodSecurity", lambda around: PodSecurity(around.cache)),
    NamedPlugin("PodNodeSelector", lambda around: PodNodeSelector(around.cache), default=False),
    NamedPlugin("Priority", lambda around: Priority(around.cache)),
    NamedPlugin(
        "DefaultTolerationSeconds", lambda around: DefaultTolerationSeconds(around.toleration_seconds)
    ),
    NamedPlugin(
        "PodTolerationRestriction", lambda around: PodTolerationRestriction(around.cache), default=False
    ),
    NamedPlugin("EventRateLimit", default=False, lacks=CONFIGURED),
    NamedPlugin("ExtendedResourceToleration", lambda around: ExtendedResourceToleration(), default=False),
    NamedPlugin("DefaultStorageClass", lambda around: DefaultStorageClass(around.cache)),
    NamedPlugin("StorageObjectInUseProtection", lambda around: StorageObjectInUseProtection()),
    NamedPlugin("PodGroupProtection"),
    NamedPlugin(
        "OwnerReferencesPermissionEnforcement",
        _owner_references,
        default=False,
    ),
    NamedPlugin("PersistentVolumeClaimResize", lambda around: PersistentVolumeClaimResize(around.cache)),
    NamedPlugin("RuntimeClass", lambda around: RuntimeClass(around.cache)),
    NamedPlugin(
        "CertificateApproval", lambda around: certificates.CertificateApproval(around.access.authorizer)
    ),
    NamedPlugin(
        "CertificateSigning", lambda around: certificates.CertificateSigning(around.access.authorizer)
    ),
    NamedPlugin(
        "ClusterTrustBundleAttest",
        lambda around: certificates.ClusterTrustBundleAttest(around.access.authorizer),
    ),
    NamedPlugin("CertificateSubjectRestriction", lambda around: certificates.CertificateSubjectRestriction()),
    NamedPlugin("DefaultIngressClass", lambda around: DefaultIngressClass(around.cache)),
    NamedPlugin("DenyServiceExternalIPs", lambda around: DenyServiceExternalIPs(), default=False),
    NamedPlugin("PodTopologyLabels", lambda around: PodTopologyLabels(around.cache)),
    NamedPlugin("PodGroupWorkloadExists"),
    NamedPlugin("NodeDeclaredFeatureValidator", lambda around: NodeDeclaredFeatureValidator(around.cache)),
    NamedPlugin("JobValidation"),
    NamedPlugin("PodResizeValidator", lambda around: PodResizeValidator(around.cache)),
    NamedPlugin(
        "MutatingAdmissionPolicy",
        lambda around: MutatingPolicies(Policies("mutating", around.catalog, around.cache, around.access)),
    ),
    NamedPlugin("MutatingAdmissionWebhook", lambda around: MutatingWebhooks(_webhooks("mutating", around))),
    NamedPlugin(
        "ValidatingAdmissionPolicy",
        lambda around: ValidatingPolicies(
            Policies("validating", around.catalog, around.cache, around.access)
        ),
    ),
    NamedPlugin(
        "ValidatingAdmissionWebhook", lambda around: ValidatingWebhooks(_webhooks("validating", around))
    ),
    NamedPlugin(
        "ResourceQuota",
        lambda around: ResourceQuota(around.catalog, around.cache, around.charges, around.writer),
    ),
    NamedPlugin("AlwaysDeny", lambda around: AlwaysDenyPlugin(), default=False),
)
"""In order."""
DEFAULT = frozenset(plugin.name for plugin in PLUGINS if plugin.default) - {"ServiceAccount"}
"""ServiceAccount is on by default in kube-apiserver, where a controller manager makes the accounts; here pods can be
created without one unless somebody asks for it."""


def parse_plugins(enabled: list[str], disabled: list[str]) -> frozenset[str]:
    """The names of the plugins to run, from both options, each repeated or with commas. Raises OptionError."""
    more, fewer = set(_names(enabled)), set(_names(disabled))
    known = {plugin.name: plugin for plugin in PLUGINS}
    for option, names in (("enable", more), ("disable", fewer)):
        for name in sorted(names):
            if name not in known:
                raise OptionError(
                    f"--{option}-admission-plugins: {name!r} is none; use {', '.join(sorted(known))}"
                )
            if option == "enable" and known[name].lacks:
                raise OptionError(f"--enable-admission-plugins: {name}: {known[name].lacks}")
    return (DEFAULT | more) - fewer


def _names(texts: list[str]) -> Iterator[str]:
    for text in texts:
        yield from (name.strip() for name in text.split(",") if name.strip())


def make_plugins(names: frozenset[str], around: Around) -> list[Plugin]:
    """The plugins of these names, in order, with what is no plugin there but part of how roles, claims and updates are
    stored: that comes between what changes objects and what only looks."""
    access = around.access
    rights: list[Plugin] = [CreateRights(access.authorizer), DeviceAdminAccess(around.cache)]
    if access.rbac is not None:
        rights.insert(0, RoleEscalation(Escalation(access.rbac, access.authorizer)))
    found: list[Plugin] = []
    for named in PLUGINS:
        if named.name == "ValidatingAdmissionPolicy":
            found += rights
        if named.make is not None and named.name in names:
            found.append(named.make(around))
    return found
