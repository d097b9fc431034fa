"""What a pod refers to by name, so that its node must be able to read it."""

from collections.abc import Iterator

from kubeclient.objects import Obj


def references(pod: Obj) -> set[tuple[str, str]]:
    """What a pod refers to in its namespace, as (plural, name)."""
    spec = pod.get("spec") or {}
    found = {("serviceaccounts", spec.get("serviceAccountName", ""))}
    found |= {("secrets", each.get("name", "")) for each in spec.get("imagePullSecrets") or ()}
    for volume in spec.get("volumes") or ():
        found |= set(_of_volume(volume))
    for list_name in ("containers", "initContainers", "ephemeralContainers"):
        for container in spec.get(list_name) or ():
            found |= set(_of_container(container))
    statuses = (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    claims = [*(spec.get("resourceClaims") or ()), *statuses]
    found |= {("resourceclaims", each.get("resourceClaimName", "")) for each in claims}
    return {(plural, name) for plural, name in found if name}


def _of_volume(volume: Obj) -> Iterator[tuple[str, str]]:
    for source in (volume, *((volume.get("projected") or {}).get("sources") or ())):
        secret = source.get("secret") or {}
        yield "secrets", secret.get("secretName") or secret.get("name", "")
        yield "configmaps", (source.get("configMap") or {}).get("name", "")
    claim = volume.get("persistentVolumeClaim") or {}
    yield "persistentvolumeclaims", claim.get("claimName", "")


def _of_container(container: Obj) -> Iterator[tuple[str, str]]:
    for source in container.get("envFrom") or ():
        yield "secrets", (source.get("secretRef") or {}).get("name", "")
        yield "configmaps", (source.get("configMapRef") or {}).get("name", "")
    for variable in container.get("env") or ():
        source = variable.get("valueFrom") or {}
        yield "secrets", (source.get("secretKeyRef") or {}).get("name", "")
        yield "configmaps", (source.get("configMapKeyRef") or {}).get("name", "")
