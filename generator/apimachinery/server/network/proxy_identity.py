"""How this server proves to others that it is the proxy, and how it names the user there.

It shows a client certificate (``--proxy-client-cert-file``, or one that it makes), and says in headers whom it has
authenticated (the ``requestheader`` protocol of kube-apiserver). What an aggregated server needs to believe that is
published in the ConfigMap ``extension-apiserver-authentication`` of kube-system.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from apimachinery.http.messages import User

NAMESPACE, CONFIG_MAP = "kube-system", "extension-apiserver-authentication"
AGGREGATOR = User("system:kube-aggregator", groups=("system:masters",))
"""In whose name this server itself asks aggregated servers."""
USER, UID, GROUP, EXTRA = "X-Remote-User", "X-Remote-Uid", "X-Remote-Group", "X-Remote-Extra-"
WITHHELD = ("x-remote-", "impersonate-")
"""What no client may say in our name."""
_NAME_SAFE = "!#$&'*+.^_`|~-"


@dataclass(frozen=True, slots=True)
class ProxyIdentity:
    """``certificate`` is the file of the client certificate and that of its key; ``published`` is the data of the
    ConfigMap; empty where nothing is published."""

    certificate: tuple[Path, Path] | None = None
    published: Mapping[str, str] = field(default_factory=dict)


def identity_headers(user: User) -> list[tuple[str, str]]:
    """The headers that name a user."""
    headers = [(USER, user.name)]
    if user.uid:
        headers.append((UID, user.uid))
    headers += [(GROUP, group) for group in user.groups]
    headers += [
        (EXTRA + quote(key, safe=_NAME_SAFE), value) for key, values in user.extra for value in values
    ]
    return headers
