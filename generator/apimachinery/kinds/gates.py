"""Feature gates that rules depend on: since which release each is on by default.

Source: kube-apiserver's table of gates. Rules are those of the release that an object is checked for
(``meta.release``); a gate that no release has on by default is off.
"""

from __future__ import annotations

from apimachinery.meta.names import SERVICE_NAMES_RELAXED
from apimachinery.meta.release import current_release, release_number

_ON_SINCE: dict[str, tuple[int, int] | None] = {
    "AuthorizePodWebsocketUpgradeCreatePermission": (1, 35),
    "ClearingNominatedNodeNameAfterBinding": (1, 35),
    "ContainerRestartRules": (1, 35),
    "ContainerStopSignals": None,
    "CrossNamespaceVolumeDataSource": None,
    "GenericWorkload": None,
    "HPAConfigurableTolerance": (1, 35),
    "HPAScaleToZero": None,
    "HostnameOverride": (1, 35),
    "ImageVolumeWithDigest": None,
    "InPlacePodLevelResourcesVerticalScaling": (1, 36),
    "InPlacePodVerticalScalingInitContainers": (1, 36),
    "MaxUnavailableStatefulSet": None,
    "MutableCSINodeAllocatableCount": (1, 35),
    "MutablePVNodeAffinity": None,
    "MutablePodResourcesForSuspendedJobs": (1, 36),
    "MutableSchedulingDirectivesForSuspendedJobs": (1, 36),
    "PodCertificateRequest": None,
    "PreferSameTrafficDistribution": (1, 34),
    "RecoverVolumeExpansionFailure": (1, 32),
    "RelaxedServiceNameValidation": SERVICE_NAMES_RELAXED,
    "RestartAllContainersOnContainerExits": (1, 36),
    "SELinuxMount": None,
    "StrictIPCIDRValidation": (1, 36),
    "TaintTolerationComparisonOperators": None,
    "VolumeAttributesClass": (1, 34),
}


def enabled(gate: str, release: str = "") -> bool:
    """Whether a release, that of the check unless one is given, has the gate on by default. Raises ``KeyError`` for a
    gate that is not in the table."""
    since = _ON_SINCE[gate]
    return since is not None and since <= release_number(release or current_release())
