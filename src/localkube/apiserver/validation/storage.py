"""Storage classes, CSI drivers and nodes, attachments."""

from collections.abc import Mapping

from kubeclient.objects import Obj
from localkube.apiserver.validation.errors import (
    Errors,
    duplicate,
    forbidden_field,
    in_range,
    invalid,
    invalid_each,
    not_negative,
    not_supported,
    required,
    too_long,
    unchanged,
)
from localkube.apiserver.validation.formats import dns_subdomain, label_key, size
from localkube.apiserver.validation.internal import printed
from localkube.apiserver.validation.metadata import own_meta, own_meta_update
from localkube.apiserver.validation.persistent_volumes import inline_spec
from localkube.apiserver.validation.volume_sources import csi_driver_name

_PARAMETERS_MAX = 512
_PARAMETERS_SIZE_MAX = 256 * 1024
_METADATA_MAX = 256 * 1024
_ERROR_MAX = 1024
_NODE_ID_MAX = 256
_FS_GROUP_POLICIES = ("File", "None", "ReadWriteOnceWithFSType")


def create_class(obj: Obj) -> Errors:
    errors: Errors = []
    own_meta(errors, obj["metadata"], dns_subdomain, namespaced=False)
    provisioner = obj["provisioner"]
    if not provisioner:
        errors.append(required("provisioner"))
    else:
        lower = provisioner.lower()
        invalid_each(errors, "provisioner", lower, label_key(lower))
    _parameters(errors, obj.get("parameters", {}))
    if obj["reclaimPolicy"] not in ("", "Delete", "Retain"):
        policies = ("Delete", "Retain")
        errors.append(not_supported("reclaimPolicy", obj["reclaimPolicy"], policies))
    modes = ("Immediate", "WaitForFirstConsumer")
    if obj["volumeBindingMode"] not in modes:
        errors.append(not_supported("volumeBindingMode", obj["volumeBindingMode"], modes))
    _topologies(errors, obj.get("allowedTopologies", []))
    return errors


def update_class(new: Obj, old: Obj) -> Errors:
    errors = create_class(new)
    own_meta_update(errors, new["metadata"], old["metadata"])
    for name in ("parameters", "provisioner", "reclaimPolicy"):
        if new.get(name) != old.get(name):
            errors.append(forbidden_field(name, f"updates to {name} are forbidden."))
    name = "volumeBindingMode"
    unchanged(errors, new.get(name), old.get(name), name)
    return errors


def create_attachment(obj: Obj) -> Errors:
    errors = _attachment(obj)
    spec = obj["spec"]
    csi_driver_name(errors, spec["attacher"], "spec.attacher")
    name = spec["source"].get("persistentVolumeName")
    if name is not None:
        path = "spec.source.persistentVolumeName"
        invalid_each(errors, path, name, dns_subdomain(name))
    return errors


def update_attachment(new: Obj, old: Obj) -> Errors:
    errors = _attachment(new)
    if new["spec"] != old["spec"]:
        shown = printed(new["spec"], "storage.VolumeAttachmentSpec")
        errors.append(invalid("spec", shown, "field is immutable"))
    return errors


def create_csi_node(obj: Obj) -> Errors:
    errors: Errors = []
    own_meta(errors, obj["metadata"], dns_subdomain, namespaced=False)
    names: set[str] = set()
    for place, driver in enumerate(obj["spec"].get("drivers", ())):
        _node_driver(errors, driver, names, f"spec.drivers[{place}]")
    return errors


def update_csi_node(new: Obj, old: Obj) -> Errors:
    # Looked at twice, as in Kubernetes.
    errors = create_csi_node(new) + create_csi_node(new)
    for was in old["spec"].get("drivers", ()):
        for now in new["spec"].get("drivers", ()):
            fixed = {key: value for key, value in now.items() if key != "allocatable"}
            before = {key: value for key, value in was.items() if key != "allocatable"}
            if now["name"] == was["name"] and fixed != before:
                shown = printed(fixed, "storage.CSINodeDriver")
                errors.append(invalid("spec.drivers", shown, "field is immutable"))
    return errors


def create_csi_driver(obj: Obj) -> Errors:
    errors: Errors = []
    own_meta(errors, obj["metadata"], dns_subdomain, namespaced=False)
    _driver_spec(errors, obj["spec"])
    return errors


def update_csi_driver(new: Obj, old: Obj) -> Errors:
    errors: Errors = []
    own_meta_update(errors, new["metadata"], old["metadata"])
    spec, before = new["spec"], old["spec"]
    _driver_spec(errors, spec)
    # The path is misspelt in Kubernetes.
    unchanged(errors, spec["attachRequired"], before["attachRequired"], "spec.attachedRequired")
    name = "volumeLifecycleModes"
    unchanged(errors, spec[name], before[name], f"spec.{name}")
    return errors


def _parameters(errors: Errors, parameters: Mapping[str, str]) -> None:
    if len(parameters) > _PARAMETERS_MAX:
        errors.append(too_long("parameters", _PARAMETERS_MAX))
        return
    if "" in parameters:
        errors.append(invalid("parameters", "", "field can not be empty."))
    if sum(size(key) + size(value) for key, value in parameters.items()) > _PARAMETERS_SIZE_MAX:
        errors.append(too_long("parameters", _PARAMETERS_SIZE_MAX))


def _topologies(errors: Errors, topologies: list[Obj]) -> None:
    # The server compares with as many empty terms as there are terms: an empty one is too many.
    seen: list[dict[str, set[str]]] = [{} for _ in topologies]
    for place, term in enumerate(topologies):
        path = f"allowedTopologies[{place}].matchLabelExpressions"
        chosen: dict[str, set[str]] = {}
        for number, requirement in enumerate(term.get("matchLabelExpressions", ())):
            at, key = f"{path}[{number}]", requirement["key"]
            _topology_values(errors, requirement.get("values", []), f"{at}.values")
            invalid_each(errors, f"{at}.key", key, label_key(key))
            if key in chosen:
                errors.append(duplicate(f"{at}.key", key))
            chosen[key] = set(requirement.get("values", ()))
        errors += [duplicate(path, "") for one in seen if one == chosen]
        seen.append(chosen)


def _topology_values(errors: Errors, values: list[str], path: str) -> None:
    if not values:
        errors.append(required(path))
    for place, value in enumerate(values):
        if value in values[:place]:
            errors.append(duplicate(f"{path}[{place}]", value))


def _attachment(obj: Obj) -> Errors:
    errors: Errors = []
    own_meta(errors, obj["metadata"], dns_subdomain, namespaced=False)
    spec = obj["spec"]
    if not spec["attacher"]:
        errors.append(required("spec.attacher"))
    _attached(errors, spec["source"], "spec.source")
    invalid_each(errors, "spec.nodeName", spec["nodeName"], dns_subdomain(spec["nodeName"]))
    status = obj.get("status", {})
    metadata = status.get("attachmentMetadata", {})
    if sum(size(key) + size(value) for key, value in metadata.items()) > _METADATA_MAX:
        errors.append(too_long("status.attachmentMetadata", _METADATA_MAX))
    for name in ("attachError", "detachError"):
        problem = status.get(name, {})
        if size(problem.get("message", "")) > _ERROR_MAX:
            errors.append(too_long(f"status.{name}.message", _METADATA_MAX))
        if problem.get("errorCode", 0) < 0:
            path = f"status.{name}.errorCode"
            errors.append(invalid(path, problem["errorCode"], in_range(0, 2**31 - 1)))
    return errors


def _attached(errors: Errors, source: Obj, path: str) -> None:
    what = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    inline, name = source.get("inlineVolumeSpec"), source.get("persistentVolumeName")
    if inline is None and name is None:
        errors.append(required(path, what))
    elif inline is not None and name is not None:
        errors.append(forbidden_field(path, what))
    elif inline is not None:
        inline_spec(errors, inline, f"{path}.inlineVolumeSpec")
    elif not name:
        what = "must specify non empty persistentVolumeName"
        errors.append(required(f"{path}.persistentVolumeName", what))


def _node_driver(errors: Errors, driver: Obj, names: set[str], path: str) -> None:
    name, node = driver["name"], driver["nodeID"]
    csi_driver_name(errors, name, f"{path}.name")
    if not node:
        errors.append(required(f"{path}.nodeID"))
    if size(node) > _NODE_ID_MAX:
        what = f"must be {_NODE_ID_MAX} characters or less"
        errors.append(invalid(f"{path}.nodeID", node, what))
    count = driver.get("allocatable", {}).get("count", 0)
    not_negative(errors, count, f"{path}.allocatable.count")
    if name in names:
        errors.append(duplicate(f"{path}.name", name))
    names.add(name)
    keys: set[str] = set()
    for key in driver.get("topologyKeys", ()):
        if not key:
            errors.append(required(path))
        if key in keys:
            errors.append(duplicate(path, key))
        keys.add(key)
        invalid_each(errors, path, key, label_key(key))


def _driver_spec(errors: Errors, spec: Obj) -> None:
    policy = spec["fsGroupPolicy"]
    if policy not in _FS_GROUP_POLICIES:
        errors.append(not_supported("spec.fsGroupPolicy", policy, _FS_GROUP_POLICIES))
    requests = spec.get("tokenRequests", ())
    audiences: set[str] = set()
    for place, request in enumerate(requests):
        _token_request(errors, request, audiences, f"spec.tokenRequests[{place}]")
    modes = ("Persistent", "Ephemeral")
    for mode in spec["volumeLifecycleModes"]:
        if mode not in modes:
            errors.append(not_supported("spec.volumeLifecycleModes", mode, modes))
    name = "nodeAllocatableUpdatePeriodSeconds"
    if spec.get(name, 10) < 10:
        what = "must be greater than or equal to 10 seconds"
        errors.append(invalid(f"spec.{name}", spec[name], what))
    name = "serviceAccountTokenInSecrets"
    if name in spec and not requests:
        what = f"{name} is set but no tokenRequests are specified"
        errors.append(invalid(f"spec.{name}", spec[name], what))


def _token_request(errors: Errors, request: Obj, audiences: set[str], path: str) -> None:
    if request["audience"] in audiences:
        errors.append(duplicate(f"{path}.audience", request["audience"]))
        return
    audiences.add(request["audience"])
    seconds, at = request.get("expirationSeconds"), f"{path}.expirationSeconds"
    if seconds is not None and seconds < 600:
        what = "may not specify a duration less than 10 minutes"
        errors.append(invalid(at, seconds, what))
    if seconds is not None and seconds > 1 << 32:
        what = "may not specify a duration larger than 2^32 seconds"
        errors.append(invalid(at, seconds, what))
