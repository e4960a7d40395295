"""The credential of the next request: tokens, certificates and authorities, renewed as ``config`` says."""

from __future__ import annotations

import base64
import json
import logging
import os
import sys
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from apimachinery.client.config import Config, ConfigError, Credential, ExecPlugin, FileBytes
from apimachinery.client.oidc import OidcError, refreshed, seconds_left
from apimachinery.client.tls import make_tls

TOKEN_FILE_SECONDS: Final = 60.0
MISSING_FILE_SECONDS: Final = 5.0
MATERIAL_SECONDS: Final = 60.0
EXEC_SECONDS: Final = 60.0

_log = logging.getLogger("kubewright.client")


class CredentialSource:
    """Gives the credential of the next request; safe to share between threads.

    ``current()`` may read files or run an exec plugin; ``refresh()`` drops what is cached, after a 401. Raises
    ``ConfigError`` where a plugin fails.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._lock = threading.Lock()
        self._cached: Credential | None = None
        self._identity: Credential | None = None
        self._identity_until = 0.0
        self._material = Credential(
            certificate=config.certificate, key=config.key, authority=config.certificate_authority
        )
        pem = (config.certificate, config.key, config.certificate_authority)
        self._has_files = any(isinstance(each, FileBytes) for each in pem)
        self._material_until = 0.0 if self._has_files else float("inf")
        self._oidc = config.oidc

    @property
    def may_block(self) -> bool:
        """Whether ``current()`` may read files or run programs (then async code calls it in a thread)."""
        return not self._is_fresh() and (self.can_refresh or self._has_files)

    @property
    def can_refresh(self) -> bool:
        """Whether another credential may come after ``refresh()``."""
        config = self._config
        return bool(
            config.token_file
            or config.exec_plugin
            or config.oidc
            or isinstance(config.certificate, FileBytes)
        )

    def refresh(self) -> None:
        """Asks for another credential next time."""
        with self._lock:
            self._identity_until = 0.0
            if self._oidc is not None:
                self._oidc = replace(self._oidc, id_token="")
        self.reread()

    def reread(self) -> None:
        """Has files of certificates read again next time: a connection failed, perhaps for what they said."""
        if self._has_files:
            self._material_until = 0.0

    def current(self) -> Credential:
        """The credential to use now."""
        cached = self._cached
        if cached is not None and self._is_fresh():
            return cached
        with self._lock:
            if time.monotonic() >= self._material_until:
                self._renew_material()
            if self._identity is None or time.monotonic() >= self._identity_until:
                self._identity = self._renew_identity(self._identity)
            identity, material = self._identity, self._material
            own = identity if identity.certificate else material
            self._cached = replace(
                identity, certificate=own.certificate, key=own.key, authority=material.authority
            )
            return self._cached

    def _is_fresh(self) -> bool:
        return time.monotonic() < min(self._identity_until, self._material_until)

    def _renew_identity(self, last: Credential | None) -> Credential:
        try:
            made, seconds = self._make()
        except ConfigError as error:
            # A token file is replaced by a rename at best; the token we have is good for a while yet.
            if last is None or self._config.exec_plugin or self._config.oidc:
                raise
            _log.warning("%s; going on with the token read before", error)
            made, seconds = last, MISSING_FILE_SECONDS
        self._identity_until = time.monotonic() + seconds
        return made

    def _renew_material(self) -> None:
        """Reads certificate, key and authority again. What cannot be used (two files are not replaced at once) is
        tried again soon."""
        config, last = self._config, self._material
        try:
            made = Credential(
                certificate=_newest(last.certificate, "client-certificate"),
                key=_newest(last.key, "client-key"),
                authority=_newest(last.authority, "certificate-authority"),
            )
            if made != last:
                make_tls(config, made)
        except ConfigError as error:
            _log.warning("%s; going on with what was read before", error)
            made, seconds = last, MISSING_FILE_SECONDS
        else:
            seconds = MATERIAL_SECONDS
        self._material = made
        self._material_until = time.monotonic() + seconds

    def _make(self) -> tuple[Credential, float]:
        config = self._config
        if config.exec_plugin is not None:
            return run_plugin(config.exec_plugin, config)
        if self._oidc is not None and not config.token_file and not config.token:
            try:
                if not seconds_left(self._oidc.id_token):
                    self._oidc = refreshed(self._oidc)
            except OidcError as error:
                raise ConfigError(f"auth-provider oidc: {error}") from None
            token = self._oidc.id_token
            # a token whose end cannot be read is used until the server refuses it
            return Credential(authorization=f"Bearer {token}"), seconds_left(token) or float("inf")
        if config.token_file:
            token = FileBytes.read(config.token_file, "tokenFile").decode("utf-8", "replace").strip()
            return Credential(authorization=f"Bearer {token}"), TOKEN_FILE_SECONDS
        if config.token:
            return Credential(authorization=f"Bearer {config.token}"), float("inf")
        if config.username:
            pair = base64.b64encode(f"{config.username}:{config.password}".encode()).decode()
            return Credential(authorization=f"Basic {pair}"), float("inf")
        return Credential(), float("inf")


def _newest(last: bytes, name: str) -> bytes:
    return FileBytes.read(last.path, name) if isinstance(last, FileBytes) else last


def run_plugin(plugin: ExecPlugin, config: Config) -> tuple[Credential, float]:
    """Runs an exec plugin; gives its credential and for how many seconds it holds (KEP-541).

    Raises ``ConfigError`` with the plugin's own words and install hint where it cannot be run, fails, takes
    longer than a minute, or prints no ExecCredential.
    """
    import subprocess

    tty = plugin.interactive_mode != "Never" and sys.stdin is not None and sys.stdin.isatty()
    if plugin.interactive_mode == "Always" and not tty:
        raise ConfigError(f'exec plugin "{plugin.command}" needs a terminal (interactiveMode Always)')
    spec: dict[str, Any] = {"interactive": tty}
    if plugin.provide_cluster_info:
        spec["cluster"] = {
            "server": config.server,
            "tls-server-name": config.tls_server_name,
            "insecure-skip-tls-verify": config.insecure_skip_tls_verify,
            "certificate-authority-data": base64.b64encode(config.certificate_authority).decode(),
        }
    info = {"kind": "ExecCredential", "apiVersion": plugin.api_version, "spec": spec}
    command = plugin.command
    if os.sep in command and not Path(command).is_absolute() and plugin.directory:
        command = str(Path(plugin.directory) / command)
    try:
        done = subprocess.run(
            [command, *plugin.args],
            env={**os.environ, **plugin.env, "KUBERNETES_EXEC_INFO": json.dumps(info)},
            stdin=None if tty else subprocess.DEVNULL,
            capture_output=True,
            timeout=EXEC_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        hint = f": {plugin.install_hint}" if plugin.install_hint else ""
        raise ConfigError(f'exec plugin "{command}" not found{hint}') from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(f'exec plugin "{command}" could not be run: {error}') from None
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip()
        raise ConfigError(f'exec plugin "{command}" ended with {done.returncode}: {said}')
    try:
        return _printed_credential(done.stdout, plugin.api_version)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            f'exec plugin "{command}" printed no {plugin.api_version} ExecCredential: {error}'
        ) from None


def _printed_credential(printed: bytes, api_version: str) -> tuple[Credential, float]:
    """Reads an ExecCredential. Raises ValueError, KeyError, TypeError or AttributeError for what is none."""
    answer = json.loads(printed)
    status = answer["status"]
    if answer["kind"] != "ExecCredential" or answer["apiVersion"] != api_version:
        raise ValueError(f"it answered {answer['apiVersion']} {answer['kind']}")
    token = status.get("token") or ""
    certificate = (status.get("clientCertificateData") or "").encode()
    key = (status.get("clientKeyData") or "").encode()
    if not token and not (certificate and key):
        raise ValueError("it gave neither a token nor a certificate with its key")
    seconds = float("inf")
    if expires := status.get("expirationTimestamp"):
        ends = datetime.fromisoformat(expires.replace("Z", "+00:00"))
        seconds = max(0.0, (ends - datetime.now(UTC)).total_seconds())
    authorization = f"Bearer {token}" if token else ""
    return Credential(authorization=authorization, certificate=certificate, key=key), seconds
