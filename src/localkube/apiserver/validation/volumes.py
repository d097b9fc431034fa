"""A pod's volumes: each has a name of its own and exactly one source."""

from collections.abc import Mapping

from kubeclient.objects import Obj
from localkube.apiserver.validation import volume_sources as source
from localkube.apiserver.validation.errors import (
    Errors,
    duplicate,
    forbidden_field,
    invalid,
    invalid_each,
    required,
)
from localkube.apiserver.validation.formats import dns_label, dns_subdomain

ONE_TYPE = "may not specify more than 1 volume type"
NO_TYPE = "must specify a volume type"

# The sources that a kubelet here can mount, or that name an object of the cluster.
_CHECKED: dict[str, source.Rule] = {
    "emptyDir": source.empty_dir,
    "hostPath": source.host_path,
    "secret": source.secret,
    "nfs": source.nfs,
    "persistentVolumeClaim": source.needs("claimName"),
    "downwardAPI": source.downward_api,
    "configMap": source.config_map,
    "projected": source.projected,
    "csi": source.csi,
    "ephemeral": source.ephemeral,
    "image": source.image,
}
SOURCES: Mapping[str, source.Rule] = _CHECKED | dict.fromkeys(
    (*source.OF_VENDORS, "gitRepo"), source.schema_alone
)


def volumes(errors: Errors, spec: Obj, pod: Obj | None, path: str) -> dict[str, Obj]:
    """The usable volumes by name. `pod` is the pod's metadata; None in templates."""
    known: dict[str, Obj] = {}
    listed = spec.get("volumes", ())
    owner = pod.get("name", "") if pod is not None else ""
    made = {f"{owner}-{one['name']}" for one in listed if owner and "ephemeral" in one}
    for place, volume in enumerate(listed):
        before = len(errors)
        at, name = f"{path}[{place}]", volume["name"]
        _source(errors, volume, pod, at)
        if not name:
            errors.append(required(f"{at}.name"))
        else:
            invalid_each(errors, f"{at}.name", name, dns_label(name))
        if name in known:
            errors.append(duplicate(f"{at}.name", name))
        if len(errors) == before:
            known[name] = volume
        claim = volume.get("persistentVolumeClaim", {}).get("claimName")
        if made and claim in made:
            what = "must not reference a PVC that gets created for an ephemeral volume"
            errors.append(invalid(f"{at}.persistentVolumeClaim.claimName", claim, what))
    return known


def _source(errors: Errors, volume: Obj, pod: Obj | None, path: str) -> None:
    if len(volume) == 2:  # a name and a source: almost all
        names = [name for name in volume if name in SOURCES]
    else:
        names = [name for name in SOURCES if name in volume]
    if not names:
        errors.append(required(path, NO_TYPE))
        return
    SOURCES[names[0]](errors, volume[names[0]], f"{path}.{names[0]}")
    if names[0] in ("ephemeral", "image"):
        _of_pod(errors, volume, pod, path)
    for name in names[1:]:
        errors.append(forbidden_field(f"{path}.{name}", ONE_TYPE))


def _of_pod(errors: Errors, volume: Obj, pod: Obj | None, path: str) -> None:
    """What only a pod can know, not a template."""
    if pod is None:
        return
    if "image" in volume and not volume["image"].get("reference"):
        # Reported before the pull policy in Kubernetes; the order of both is the same here.
        errors.append(required(f"{path}.image.reference"))
    if "ephemeral" in volume and pod.get("name") and volume["name"]:
        claim = f"{pod['name']}-{volume['name']}"
        for complaint in dns_subdomain(claim):
            what = f'PVC name "{claim}": {complaint}'
            errors.append(invalid(f"{path}.name", volume["name"], what))
