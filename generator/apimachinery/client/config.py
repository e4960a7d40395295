"""Where a client connects and as whom: kubeconfig files, exec plugins, in-cluster service accounts.

Rules (client-go's loading rules, as kubectl applies them):

* An explicit path wins; else every file of ``KUBECONFIG`` (split at the platform's path separator; files that
  do not exist are passed over); else ``~/.kube/config``; else the service account of the pod we run in.
* Merging: the first file that has a cluster, user or context of a name gives the whole entry, and the first
  that names a current context decides it. Relative paths are relative to the file that wrote them.
* Of a user's credentials ``tokenFile`` beats ``token``; certificates are used besides either. Token files are
  read again a minute after the last reading, so rotated service-account tokens are picked up.
* An exec plugin (client.authentication.k8s.io/v1, v1beta1) is run when its credential is first needed, when
  it has expired, and after a 401.
  A token file that is missing for a moment (a rotation) leaves the last token in use.
* Files of certificates, keys and authorities are read again too: at most every ``MATERIAL_SECONDS``, after a 401, and
  after a handshake that failed. New connections have what was read; a key that does not fit its certificate (one of
  the two was replaced) or a file that is missing leaves the last ones in use.
* Of the old ``auth-provider`` entries ``oidc`` is understood (``oidc``); others are refused, never passed over.
* ``*-data`` fields beat the file of the same name.
"""

from __future__ import annotations

import base64
import binascii
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import urlsplit

from apimachinery.client.oidc import OidcProvider

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
EXEC_VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")

_log = logging.getLogger("kubewright.client")


class ConfigError(Exception):
    """A kubeconfig or its environment cannot be used. The text names the file, the entry and what to do."""


class FileBytes(bytes):
    """What a file held when it was read, and where it is: whoever uses it for long reads it again."""

    path: str

    @classmethod
    def read(cls, path: str, name: str = "file") -> Self:
        """The bytes of a file that the field ``name`` names. Raises ``ConfigError``."""
        try:
            made = cls(Path(path).read_bytes())
        except OSError as error:
            raise ConfigError(f"{name}: cannot read {path}: {error.strerror}") from None
        made.path = path
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Impersonation:
    """Whom to act as (``Impersonate-*`` headers)."""

    user: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def headers(self) -> list[tuple[str, str]]:
        """The request headers, in a fixed order."""
        found: list[tuple[str, str]] = []
        if self.user:
            found.append(("Impersonate-User", self.user))
        if self.uid:
            found.append(("Impersonate-Uid", self.uid))
        found += [("Impersonate-Group", group) for group in self.groups]
        found += [
            (f"Impersonate-Extra-{key}", v) for key, values in sorted(self.extra.items()) for v in values
        ]
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecPlugin:
    """A program that prints an ExecCredential."""

    api_version: str
    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = "IfAvailable"
    directory: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """What proves who we are on the next request: a header value, a certificate, or nothing. ``authority`` is what
    proves who the server is."""

    authorization: str = ""
    certificate: bytes = b""
    key: bytes = b""
    authority: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A resolved connection: one server, one identity. PEM material is held as bytes; those of files
    (``FileBytes.read(path)``) are read again when the files change.

    ``namespace`` is the default for calls that name none. ``proxy_url`` may be ``http://``, ``https://`` or
    ``socks5://``, with user and password where the proxy asks for them.
    """

    server: str
    namespace: str = "default"
    certificate_authority: bytes = b""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    certificate: bytes = b""
    key: bytes = b""
    token: str = ""
    token_file: str = ""
    username: str = ""
    password: str = ""
    exec_plugin: ExecPlugin | None = None
    oidc: OidcProvider | None = None
    impersonation: Impersonation = field(default_factory=Impersonation)
    cluster: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str] | None = None,
        *,
        context: str = "",
        environment: Mapping[str, str] | None = None,
    ) -> Config:
        """The configuration that kubectl would use here.

        ``path`` is one kubeconfig file; without it KUBECONFIG, ``~/.kube/config`` and the service account of
        a pod are tried in that order. Raises ``ConfigError``.
        """
        env = os.environ if environment is None else environment
        files = _files(path, env)
        if not files:
            if env.get("KUBERNETES_SERVICE_HOST"):
                return cls.in_cluster(environment=env)
            raise ConfigError(
                "no kubeconfig found: set KUBECONFIG, write ~/.kube/config, or run inside a pod"
            )
        return from_document(merge_files(files), context=context, environment=env)

    @classmethod
    def in_cluster(
        cls, *, folder: Path = SERVICE_ACCOUNT, environment: Mapping[str, str] | None = None
    ) -> Config:
        """The service account of the pod this process runs in. Raises ``ConfigError`` outside a pod."""
        env = os.environ if environment is None else environment
        host, port = env.get("KUBERNETES_SERVICE_HOST"), env.get("KUBERNETES_SERVICE_PORT")
        if not host or not port:
            raise ConfigError("not in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
        token_file = folder / "token"
        if not token_file.is_file():
            raise ConfigError(f"{token_file}: no service account token is mounted here")
        named = folder / "namespace"
        return cls(
            # An IPv6 address needs brackets in a URL.
            server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
            certificate_authority=FileBytes.read(str(folder / "ca.crt"), "certificate-authority"),
            token_file=str(token_file),
            namespace=named.read_text().strip() if named.is_file() else "default",
        )

    @property
    def is_tls(self) -> bool:
        """Whether the server is reached over TLS."""
        return self.server.startswith("https:")

    def with_namespace(self, namespace: str) -> Config:
        """The same connection with another default namespace."""
        return replace(self, namespace=namespace)


# ------------------------------------------------------------------ files


def _files(path: str | os.PathLike[str] | None, env: Mapping[str, str]) -> list[Path]:
    if path is not None:
        explicit = Path(path)
        if not explicit.is_file():
            raise ConfigError(f"{explicit}: no such kubeconfig file")
        return [explicit]
    if listed := env.get("KUBECONFIG"):
        found = [Path(name).expanduser() for name in listed.split(os.pathsep) if name]
        # As kubectl: files that do not exist are passed over, unless all of them are.
        kept = [name for name in found if name.is_file()]
        if found and not kept:
            raise ConfigError(f"KUBECONFIG names no file that exists: {listed}")
        return kept
    home = Path(env.get("HOME", "~")).expanduser() / ".kube" / "config"
    return [home] if home.is_file() else []


def merge_files(files: list[Path]) -> dict[str, Any]:
    """One kubeconfig document out of several files, with every path in it made absolute. Raises ConfigError for a
    file that cannot be read or is no kubeconfig."""
    try:
        import yaml  # here, because a client that is given a Config by code needs no YAML at all
    except ImportError:
        raise ConfigError("reading a kubeconfig needs PyYAML: pip install 'kubewright[client]'") from None

    merged: dict[str, Any] = {"clusters": {}, "users": {}, "contexts": {}, "current-context": ""}
    for file in files:
        try:
            document = yaml.load(file.read_bytes(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
            raise ConfigError(f"{file}: not a readable kubeconfig: {str(error).splitlines()[0]}") from None
        if document is None:
            continue
        if not isinstance(document, dict) or document.get("kind", "Config") != "Config":
            raise ConfigError(f"{file}: not a kubeconfig (kind Config)")
        for section, inner in (("clusters", "cluster"), ("users", "user"), ("contexts", "context")):
            entries = document.get(section) or []
            if not isinstance(entries, list):
                raise ConfigError(f"{file}: {section}: must be a list of named entries")
            for entry in entries:
                if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
                    raise ConfigError(f"{file}: {section}: an entry has no name")
                body = entry.get(inner) or {}
                if not isinstance(body, dict):
                    raise ConfigError(f"{file}: {section}[{entry['name']}]: {inner} must be a map")
                # The first file that has a name gives the whole entry.
                merged[section].setdefault(entry["name"], _absolute(body, file.resolve()))
        merged["current-context"] = merged["current-context"] or document.get("current-context") or ""
    return merged


def _absolute(body: dict[str, Any], file: Path) -> dict[str, Any]:
    folder = file.parent
    paths = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
    fixed: dict[str, Any] = {
        k: str(folder / v) if k in paths and isinstance(v, str) and v else v for k, v in body.items()
    }
    plugin: Any = fixed.get("exec")
    if isinstance(plugin, dict):
        fixed["exec"] = {**plugin, "directory": str(folder)}
    provider: Any = fixed.get("auth-provider")
    if isinstance(provider, dict):
        fixed["auth-provider"] = {**provider, "file": str(file)}
    return fixed


def from_document(
    document: Mapping[str, Any], *, context: str = "", environment: Mapping[str, str] | None = None
) -> Config:
    """The connection of one context of a merged kubeconfig (entries by name). Raises ``ConfigError``."""
    env = os.environ if environment is None else environment
    name = context or document["current-context"]
    if not name:
        raise ConfigError("no context chosen: the kubeconfig has no current-context")
    if name not in document["contexts"]:
        known = ", ".join(sorted(document["contexts"])) or "none"
        raise ConfigError(f'context "{name}" does not exist; there are: {known}')
    chosen = document["contexts"][name]
    cluster = _entry(document, "clusters", chosen.get("cluster"), name)
    user = _entry(document, "users", chosen.get("user"), name) if chosen.get("user") else {}
    server = cluster.get("server") or ""
    if urlsplit(server).scheme not in ("http", "https"):
        raise ConfigError(
            f'cluster "{chosen.get("cluster")}": server must be an http or https URL, not "{server}"'
        )
    return Config(
        # Paths of the API begin with a slash.
        server=server.rstrip("/"),
        namespace=chosen.get("namespace") or "default",
        certificate_authority=_material(cluster, "certificate-authority"),
        insecure_skip_tls_verify=bool(cluster.get("insecure-skip-tls-verify")),
        tls_server_name=cluster.get("tls-server-name") or "",
        proxy_url=cluster.get("proxy-url") or proxy_of(server, env),
        certificate=_material(user, "client-certificate"),
        key=_material(user, "client-key"),
        token=user.get("token") or "",
        token_file=user.get("tokenFile") or "",
        username=user.get("username") or "",
        password=user.get("password") or "",
        exec_plugin=_plugin(user.get("exec"), chosen.get("user")),
        oidc=_provider(user.get("auth-provider"), chosen.get("user")),
        impersonation=Impersonation(
            user=user.get("as") or "",
            uid=user.get("as-uid") or "",
            groups=tuple(user.get("as-groups") or ()),
            extra={k: tuple(v) for k, v in (user.get("as-user-extra") or {}).items()},
        ),
        cluster=cluster,
    )


def _entry(document: Mapping[str, Any], section: str, name: object, context: str) -> dict[str, Any]:
    if name not in document[section]:
        raise ConfigError(
            f'context "{context}": {section[:-1]} "{name or ""}" does not exist in the kubeconfig'
        )
    found: dict[str, Any] = document[section][name]
    return found


def _material(entry: Mapping[str, Any], name: str) -> bytes:
    if data := entry.get(f"{name}-data"):
        try:
            # Go passes over line breaks, which `base64` without -w0 makes
            return base64.b64decode(data.replace("\r", "").replace("\n", ""), validate=True)
        except (binascii.Error, ValueError, TypeError, AttributeError):
            raise ConfigError(f"{name}-data: not base64") from None
    return FileBytes.read(entry[name], name) if entry.get(name) else b""


def _plugin(entry: Mapping[str, Any] | None, user: object) -> ExecPlugin | None:
    if not entry:
        return None
    version = entry.get("apiVersion") or ""
    if version not in EXEC_VERSIONS:
        raise ConfigError(
            f'user "{user}": exec.apiVersion "{version}" is not one of {", ".join(EXEC_VERSIONS)}'
        )
    if not entry.get("command"):
        raise ConfigError(f'user "{user}": exec.command is required')
    return ExecPlugin(
        api_version=version,
        command=entry["command"],
        args=tuple(entry.get("args") or ()),
        env={e["name"]: e.get("value", "") for e in entry.get("env") or ()},
        install_hint=entry.get("installHint") or "",
        provide_cluster_info=bool(entry.get("provideClusterInfo")),
        interactive_mode=entry.get("interactiveMode") or "IfAvailable",
        directory=entry.get("directory") or "",
    )


def _provider(entry: Mapping[str, Any] | None, user: object) -> OidcProvider | None:
    if not entry:
        return None
    if entry.get("name") != "oidc":
        raise ConfigError(
            f'user "{user}": auth-provider "{entry.get("name") or ""}" is not supported (kubectl dropped it in 1.26): '
            "use the exec plugin of your provider"
        )
    settings = entry.get("config") or {}
    for needed in ("idp-issuer-url", "client-id"):
        if not settings.get(needed):
            raise ConfigError(f'user "{user}": auth-provider oidc needs config.{needed}')
    folder = Path(str(entry.get("file") or "")).parent
    authority = {k: v for k, v in settings.items() if k.startswith("idp-certificate-authority")}
    if named := authority.get("idp-certificate-authority"):
        authority["idp-certificate-authority"] = str(folder / named)
    return OidcProvider(
        issuer=settings["idp-issuer-url"],
        client_id=settings["client-id"],
        client_secret=settings.get("client-secret") or "",
        id_token=settings.get("id-token") or "",
        refresh_token=settings.get("refresh-token") or "",
        certificate_authority=_material(authority, "idp-certificate-authority"),
        file=str(entry.get("file") or ""),
    )


def proxy_of(server: str, env: Mapping[str, str]) -> str:
    """The proxy that HTTPS_PROXY, HTTP_PROXY and NO_PROXY name for ``server``, as Go's net/http reads them:
    loopback is never proxied, NO_PROXY holds host suffixes, CIDR ranges or ``*``."""
    parts = urlsplit(server)
    host, scheme = (parts.hostname or "").lower(), parts.scheme
    proxy = env.get(f"{scheme.upper()}_PROXY") or env.get(f"{scheme}_proxy") or ""
    if not proxy or host == "localhost" or host.startswith("127.") or host == "::1":
        return ""
    for pattern in (env.get("NO_PROXY") or env.get("no_proxy") or "").split(","):
        if _matches(pattern.strip().lower(), host, parts.port):
            return ""
    return proxy if "://" in proxy else f"http://{proxy}"


def _matches(pattern: str, host: str, port: int | None) -> bool:
    import ipaddress

    if not pattern:
        return False
    if pattern == "*":
        return True
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(pattern, strict=False)
    except ValueError:
        name, colon, number = pattern.partition(":")
        if colon and number.isdigit() and int(number) != (port or 443):
            return False
        bare = name.lstrip("*").lstrip(".")
        return (host == bare and not name.startswith((".", "*."))) or host.endswith(f".{bare}")
