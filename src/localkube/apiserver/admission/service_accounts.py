"""ServiceAccount: sets the service account of every pod and mounts its token."""

import zlib
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from kubeclient.objects import Obj
from localkube.apiserver.admission.attributes import (
    Attributes,
    ClusterView,
    refusal,
)

_MIRROR = "kubernetes.io/config.mirror"
_MOUNTABLE_ONLY = "kubernetes.io/enforce-mountable-secrets"
_VOLUME_PREFIX = "kube-api-access-"
_MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
_TOKEN_SECONDS = 3607
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


def assign_service_account(attributes: Attributes, cluster: ClusterView) -> None:
    pod = attributes.created
    if pod is None or _is_mirror(pod):
        return
    spec = pod["spec"]
    spec["serviceAccountName"] = spec.get("serviceAccountName") or "default"
    spec["serviceAccount"] = spec["serviceAccountName"]  # the field's old name
    account = _account(attributes, cluster)
    wanted = spec.get("automountServiceAccountToken")
    if wanted is None:
        wanted = account.get("automountServiceAccountToken", True)
    if wanted:
        _mount_token(spec, account)
    if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
        spec["imagePullSecrets"] = [dict(each) for each in account["imagePullSecrets"]]


def check_service_account(attributes: Attributes, cluster: ClusterView) -> None:
    pod = attributes.created
    if pod is None:
        return
    if _is_mirror(pod):
        _check_mirror(attributes, pod["spec"])
        return
    if not pod["spec"].get("serviceAccountName"):
        where = f"{attributes.namespace}/{pod['metadata'].get('name', '')}"
        raise refusal(attributes, f"no service account specified for pod {where}")
    account = _account(attributes, cluster)
    annotations = account["metadata"].get("annotations") or {}
    if annotations.get(_MOUNTABLE_ONLY) in ("1", "t", "T", "true", "TRUE", "True"):
        for why in _unmountable(pod["spec"], account):
            raise refusal(attributes, why)


def _is_mirror(pod: Obj) -> bool:
    return _MIRROR in (pod["metadata"].get("annotations") or {})


def _account(attributes: Attributes, cluster: ClusterView) -> Obj:
    assert attributes.obj is not None
    name = attributes.obj["spec"]["serviceAccountName"]
    account = cluster.get("serviceaccounts", attributes.namespace, name)
    if account is None:
        where = f"{attributes.namespace}/{name}"
        missing = f'serviceaccount "{name}" not found'
        raise refusal(attributes, f"error looking up service account {where}: {missing}")
    return account


def _mount_token(spec: Obj, account: Obj) -> None:
    volumes: list[Obj] = spec.get("volumes") or []
    names = (volume["name"] for volume in volumes)
    found = next((name for name in names if name.startswith(_VOLUME_PREFIX)), None)
    name = found or _VOLUME_PREFIX + _suffix(account["metadata"]["uid"])
    mounted = False
    for field in ("initContainers", "containers"):
        for container in spec.get(field) or ():
            mounts = container.get("volumeMounts") or []
            # Whoever mounts something else there does not want the token.
            if all(mount.get("mountPath") != _MOUNT_PATH for mount in mounts):
                mount = {"name": name, "readOnly": True, "mountPath": _MOUNT_PATH}
                container["volumeMounts"] = [*mounts, mount]
                mounted = True
    if mounted and found is None:
        spec["volumes"] = [*volumes, {"name": name, "projected": _token_source()}]


@lru_cache(maxsize=1024)
def _suffix(uid: str) -> str:
    """The end of the token volume's name.

    Kubernetes draws a random one for each pod. Here it is the same for all pods of an account, so
    that pods of one template have equal specs and the cache of pod specs applies to them.
    """
    number, letters = zlib.crc32(uid.encode()), ""
    for _ in range(5):
        number, place = divmod(number, len(_ALPHABET))
        letters += _ALPHABET[place]
    return letters


def _token_source() -> Obj:
    field = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    return {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": _TOKEN_SECONDS, "path": "token"}},
            {
                "configMap": {
                    "name": "kube-root-ca.crt",
                    "items": [{"key": "ca.crt", "path": "ca.crt"}],
                }
            },
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": field}]}},
        ],
        "defaultMode": 420,
    }


def _check_mirror(attributes: Attributes, spec: Obj) -> None:
    if spec.get("serviceAccountName"):
        raise refusal(attributes, "a mirror pod may not reference service accounts")
    if any(True for _ in _secret_names(spec)) or spec.get("imagePullSecrets"):
        raise refusal(attributes, "a mirror pod may not reference secrets")
    for volume in spec.get("volumes") or ():
        for source in (volume.get("projected") or {}).get("sources") or ():
            if "serviceAccountToken" in source:
                why = "a mirror pod may not use ServiceAccountToken volume projections"
                raise refusal(attributes, why)


def _secret_names(spec: Obj) -> Iterator[str]:
    for volume in spec.get("volumes") or ():
        if "secret" in volume:
            yield volume["secret"].get("secretName", "")
        for source in (volume.get("projected") or {}).get("sources") or ():
            if "secret" in source:
                yield source["secret"].get("name", "")
    for _, name in _container_secrets(spec):
        yield name


def _unmountable(spec: Obj, account: Obj) -> Iterator[str]:
    """Why, for each secret that the account does not list as mountable."""
    because = f"service account {account['metadata']['name']} does not reference that"
    allowed = {each.get("name") for each in account.get("secrets") or ()}
    for volume in spec.get("volumes") or ():
        name = (volume.get("secret") or {}).get("secretName")
        if "secret" in volume and name not in allowed:
            volume_text = f'volume with secret.secretName="{name}"'
            yield f"{volume_text} is not allowed because {because} secret"
    for where, name in _container_secrets(spec):
        if name not in allowed:
            secret = f'referencing secret.secretName="{name}"'
            yield f"{where} {secret} is not allowed because {because} secret"
    pulled = {each.get("name") for each in account.get("imagePullSecrets") or ()}
    for i, each in enumerate(spec.get("imagePullSecrets") or ()):
        if each.get("name") not in pulled:
            secret = f'imagePullSecrets[{i}].name="{each.get("name", "")}"'
            yield f"{secret} is not allowed because {because} imagePullSecret"


def _container_secrets(spec: Obj) -> Iterator[tuple[str, str]]:
    for field, called in (("initContainers", "init container"), ("containers", "container")):
        for container in spec.get(field) or ():
            head = f"{called} {container['name']} with"
            for env in container.get("env") or ():
                reference: Any = (env.get("valueFrom") or {}).get("secretKeyRef")
                if reference is not None:
                    yield f"{head} envVar {env['name']}", reference.get("name", "")
            for source in container.get("envFrom") or ():
                if "secretRef" in source:
                    yield f"{head} envFrom", source["secretRef"].get("name", "")
