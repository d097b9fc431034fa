"""The empty object of each kind, as the comparison for who set which field of a new object.

A kind's structs, and those of its lists that Go always writes, are there from the start: who
creates an object does not come to own `spec` itself, but what is in it. Zero values count as unset.
"""

from functools import lru_cache
from typing import Final

from kubeclient.objects import Obj
from localkube.apiserver.defaults.shape import shape_of, zero_value

# Lists owned by element that are there, as null, in objects that nobody has touched.
_LISTS: Final = {
    ("v1", "Pod"): "spec.containers",
    ("v1", "PodTemplate"): "template.spec.containers",
    ("apps/v1", "DaemonSet"): "spec.template.spec.containers",
    ("apps/v1", "Deployment"): "spec.template.spec.containers",
    ("apps/v1", "ReplicaSet"): "spec.template.spec.containers",
    ("apps/v1", "StatefulSet"): "spec.template.spec.containers",
    ("batch/v1", "CronJob"): "spec.jobTemplate.spec.template.spec.containers",
    ("batch/v1", "Job"): "spec.template.spec.containers",
    ("storage.k8s.io/v1", "CSINode"): "spec.drivers",
}


@lru_cache(maxsize=1024)
def blank(api_version: str, kind: str) -> Obj:
    """Not to be changed by anybody. Objects of custom kinds start with nothing."""
    shape = shape_of(api_version, kind)
    obj: Obj = {"metadata": {}} if shape is None else zero_value(shape)
    *path, name = _LISTS.get((api_version, kind), "").split(".")
    if name:
        parent = obj
        for key in path:
            parent = parent[key]
        parent[name] = None
    return obj
