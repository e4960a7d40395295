"""Hints for values that a server refuses and whose message says what is wrong, but not what to write."""

from __future__ import annotations

import re
from typing import Final

_REFUSED: Final = (
    (r"less than or equal to (\S+) limit", r"raise limits.\1, or lower requests.\1"),
    (r"may not be specified when `value` is not empty", "keep one of value and valueFrom"),
    (r"may not specify more than 1 handler type", "keep one of exec, httpGet, tcpSocket and grpc"),
    (r"must specify a handler type", "add exec, httpGet, tcpSocket or grpc"),
    (r"must be between (-?\d+) and (-?\d+)", r"write a number from \1 to \2"),
    (r"must be greater than or equal to (-?\d+)", r"write \1 or more"),
    (r"must be greater than or equal to `(\w+)`", r"raise it, or lower \1"),
    (r"must be greater than (-?\d+)", r"write a number above \1"),
    (r"must be no more than (\d+) (characters|bytes)", r"shorten it to \1 \2"),
    (r"empty selector is invalid", "write the labels of the pods below matchLabels"),
    (r"Invalid value: \"none\": must be a valid IP address", "write None, with a capital"),
    (r"must be an absolute path", "begin it with /"),
    (r"expected exactly 5 fields", "write minute, hour, day, month and weekday, such as */5 * * * *"),
    (r"valid values: \"OnFailure\", \"Never\"", "write restartPolicy: OnFailure or restartPolicy: Never"),
    (r"illegal base64 data", "encode it (printf %s TEXT | base64), or write it as it is in stringData"),
    (
        r"a valid label must be",
        "letters, digits, '-', '_' and '.' are allowed; other texts belong in annotations",
    ),
    (r"a valid label key must", "write a name, or a domain, a slash and a name: example.com/team"),
    (r"must be a valid CIDR value", "add the number of bits after a slash, such as 10.0.0.0/8"),
    (r"cannot be both set", "keep one of them"),
    (r"numeric string followed by an ending '%'", "write the number and % without a space, such as 50%"),
    (
        r"volumeMounts\[\d+\].name: Not found",
        "correct the name, or add a volume of that name to the volumes of the pod",
    ),
    (r"resource or service backend is required", "add service: {name: …, port: {number: …}}"),
    (r"Not found", "correct the name, or add what it names"),
    (r"Duplicate value", "rename or remove one of them"),
)
_MODES: Final = {
    "RWO": "ReadWriteOnce",
    "ROX": "ReadOnlyMany",
    "RWX": "ReadWriteMany",
    "RWOP": "ReadWriteOncePod",
}
_BACKEND: Final = "networking.k8s.io/v1 has service: {name: …, port: {number: …}}"
_UNKNOWN: Final = {
    "targetCPUUtilizationPercentage": "autoscaling/v2 has metrics: [{type: Resource, resource: {name: cpu, "
    "target: {type: Utilization, averageUtilization: 80}}}]",
    "replicas": "this kind has no replicas: remove the line",
    "resource": "did you mean resources?",
}


def of_refusal(field: str, message: str) -> str:
    """The hint for a value that is refused; empty where there is none."""
    mode = re.match(r'Unsupported value: "(\w+)"', message)
    if mode and mode[1] in _MODES:
        return f"write {_MODES[mode[1]]}"
    for pattern, hint in _REFUSED:
        if found := re.search(pattern, f"{field}: {message}"):
            return found.expand(hint)
    if message.startswith("Required value"):
        name = field.rpartition(".")[2]
        return f"add {name}" if name else ""
    return "write one of these values" if message.startswith("Unsupported value") else ""


def of_moved(path: str) -> str:
    """The hint for a field that has another shape in newer versions; empty where there is none."""
    parent, _, name = path.rpartition(".")
    return _BACKEND if name in ("serviceName", "servicePort") and parent.lower().endswith("backend") else ""


def of_unknown(name: str) -> str:
    """The hint for an unknown field that other kinds or versions have; empty where there is none."""
    return _UNKNOWN.get(name, "")
