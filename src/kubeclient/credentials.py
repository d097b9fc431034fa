"""find_access: from a kubeconfig, or from the service account of a pod.

Plain kubeconfigs are read here. Those with plugins or providers are read by kubernetes-asyncio,
which is imported only then.
"""

import errno
import logging
import os
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from kubeclient.access import (
    Access,
    ClientCertificate,
    NoAccess,
    Remembered,
    token_in,
    trust,
    trust_anyone,
)
from kubeclient.proxies import environment_proxy

IN_CLUSTER = Path("/var/run/secrets/kubernetes.io/serviceaccount")


async def find_access(
    environ: Mapping[str, str],
    *,
    kubeconfig: str = "",
    context: str = "",
    in_cluster: Path = IN_CLUSTER,
) -> Access:
    """The given kubeconfig; or, inside a pod, its service account; or the user's kubeconfig.

    Raises NoAccess.
    """
    access = await _named_access(environ, kubeconfig, context, in_cluster)
    return replace(access, proxy=access.proxy or environment_proxy(access.url, environ))


async def _named_access(
    environ: Mapping[str, str], kubeconfig: str, context: str, in_cluster: Path
) -> Access:
    if not kubeconfig and not environ.get("KUBECONFIG") and is_pod(environ, in_cluster):
        return _in_cluster(environ, in_cluster)
    # Not loaded in a pod: an agent runs on every node, and YAML alone takes a megabyte.
    from kubeclient.kubeconfig import plain_access
    from kubeclient.kubeconfig_parts import chosen_context, read_kubeconfig

    present = _kubeconfigs(environ, kubeconfig)
    documents = [(file, read_kubeconfig(Path(file))) for file in present]
    chosen_context(documents, context)  # says what is wrong, where the library would not
    # Several files must be merged, which only the library does.
    if len(present) == 1:
        access = plain_access(Path(present[0]), context)
        if access is not None:
            return access
    return await _by_library(os.pathsep.join(present), context)


def names_cluster(environ: Mapping[str, str], in_cluster: Path = IN_CLUSTER) -> bool:
    """Whether the environment names a cluster: by a kubeconfig, or because this is a pod.

    Also by a KUBECONFIG of files that do not exist: who wrote a name wrong must not end up in
    another cluster.
    """
    return (
        is_pod(environ, in_cluster)
        or bool(environ.get("KUBECONFIG"))
        or Path(f"{environ.get('HOME', '')}/.kube/config").exists()
    )


def _kubeconfigs(environ: Mapping[str, str], named: str) -> list[str]:
    home = environ.get("HOME", "")
    files = named or environ.get("KUBECONFIG") or f"{home}/.kube/config"
    present = [name for name in files.split(os.pathsep) if name and Path(name).exists()]
    if not present:
        raise NoAccess(
            f"There is no kubeconfig at {files}, and this is not a pod. "
            "Name one with --kubeconfig or in KUBECONFIG."
        )
    return present


def is_pod(environ: Mapping[str, str], directory: Path = IN_CLUSTER) -> bool:
    """Whether this is a pod with a service account."""
    return bool(environ.get("KUBERNETES_SERVICE_HOST")) and (directory / "token").exists()


def _in_cluster(environ: Mapping[str, str], directory: Path) -> Access:
    host = environ["KUBERNETES_SERVICE_HOST"]
    port = environ.get("KUBERNETES_SERVICE_PORT", "443")
    shown = f"[{host}]" if ":" in host else host
    tls = trust(ca_file=str(directory / "ca.crt"))
    return Access(f"https://{shown}:{port}", tls, token_in(directory / "token"))


async def _by_library(files: str, context: str) -> Access:
    try:
        from kubernetes_asyncio.client import Configuration
        from kubernetes_asyncio.config import ConfigException
        from kubernetes_asyncio.config.kube_config import load_kube_config
    except ImportError as error:
        raise NoAccess(
            f"The kubeconfig {files} uses more than plain credentials, and reading it needs a "
            "package: pip install kubernetes-asyncio."
        ) from error
    except RuntimeError as error:  # the import needs a home directory
        raise NoAccess(
            f"The kubeconfig {files} uses more than plain credentials, and reading it needs a home "
            "directory: set HOME."
        ) from error
    # It also logs what it raises.
    logging.getLogger("kubernetes_asyncio.config.kube_config").setLevel(logging.CRITICAL)
    found: Any = Configuration()
    try:
        # persist_config would write renewed tokens to the kubeconfig of the user.
        loader = await load_kube_config(
            files, context or None, client_configuration=found, persist_config=False
        )
        client = _client(found)
        tls = (
            trust(ca_file=found.ssl_ca_cert or "", client=client)
            if found.verify_ssl
            else trust_anyone(client)
        )
    except (ConfigException, OSError, ValueError, AssertionError) as error:
        raise NoAccess(
            f"The kubeconfig {files} cannot be used: {_cause(error)}. "
            f"See whether kubectl can: kubectl --kubeconfig {files} version"
        ) from error
    # The library assumes types: texts, lists and nulls break it in many ways.
    except (TypeError, KeyError, AttributeError, IndexError) as error:
        words = "wanted maps and lists of clusters, contexts and users, as kubectl writes them"
        raise NoAccess(f"{files} is not a kubeconfig: {words}") from error

    async def renewed() -> str:
        try:
            await loader.load_and_set(found)
        except (ConfigException, OSError, ValueError) as error:
            raise NoAccess(f"The credentials cannot be renewed: {error}") from error
        renewed_client = _client(found)
        if renewed_client is not None:  # the certificate of a plugin expires, too
            tls.load_cert_chain(renewed_client.certificate, renewed_client.key)
        return str(found.api_key.get("BearerToken", ""))

    return Access(
        found.host.rstrip("/"),
        tls,
        Remembered(renewed, time.monotonic),
        found.tls_server_name or "",
        found.proxy or "",
    )


def _cause(error: Exception) -> str:
    if isinstance(error, OSError):
        import shutil

        # With a directory on PATH that one may not read, a program that is nowhere is "not
        # permitted".
        gone = isinstance(error, PermissionError) and shutil.which(error.filename) is None
        return f"{error.filename}: {os.strerror(errno.ENOENT) if gone else error.strerror}"
    return str(error).rstrip(".") or "a value is of the wrong type"


def _client(found: Any) -> ClientCertificate | None:
    return ClientCertificate(found.cert_file, found.key_file) if found.cert_file else None
