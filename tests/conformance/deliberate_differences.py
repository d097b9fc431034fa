"""Answers in which we differ from a real kube-apiserver, each with the reason why we keep it so.

docs/conformance.md shows these tables; tests/conformance/test_conformance_page.py keeps it current.
"""

_VERSION = "says that it is gpupool, and which Python it runs on"
_SERVED = "lists what we serve: a real server has more groups and kinds, we have metrics.k8s.io"
PRINTED = (
    "refusals show an object as it was sent, where a real server prints its internal Go type; the "
    "rest of the text is the same"
)
_NOT_JSON = (
    "says where a text stops being JSON (line and column) in the words of our parser, not of Go's"
)
_PATCH = (
    "a patch whose result does not fit its schema is shown as it was sent, where a real server "
    "prints the whole object, or the patch as a Go map"
)
_EMPTY_LIST = "an empty list and none are the same to us, where Go tells them apart"
_CRD = (
    "a CRD is established in the moment it is created, not by controllers a moment later, and has "
    "its finalizer from the start"
)

# By the name of the case.
DIFFERENCES: dict[str, str] = {
    "accept protobuf only": "we read protobuf and do not write it: every client takes JSON, too",
    "discovery: /": _SERVED,
    "discovery: /api/v1": _SERVED,
    "discovery: /apis": _SERVED,
    "discovery: aggregated /api": _SERVED,
    "discovery: openapi index": _SERVED,
    "discovery: readyz verbose": "names the parts of a server, and ours has other parts",
    "discovery: /version": _VERSION,
    "version without token": _VERSION,
    "forbidden: anonymous reads version": _VERSION,
    "watch: from the beginning": (
        "the oldest ConfigMap of a real server is a note that it keeps for itself"
    ),
    "watch: pod life": (
        "a pod whose grace is cut to nothing goes in one step; the change in between would cost "
        "every pod's end another write, and tells nobody anything"
    ),
    "rbac: view": "we fill in the rules of aggregated roles ourselves, without a controller",
    "rbac: colon in a name": _EMPTY_LIST,
    "job: success policy without index": _EMPTY_LIST,
    "crd: no versions": _EMPTY_LIST,
    "token: bound to a pod": (
        "Go writes an absent boundObjectRef as null, so the field itself counts as older than the "
        "request; to us it is new"
    ),
    "custom: status invalid": (
        "a real server looks at status twice more, for itself and for /scale, and says it thrice"
    ),
    "crd: created": _CRD,
    "crd: established": _CRD,
    "crd: deleted": _CRD,
    "create malformed body": _NOT_JSON,
    "create empty body": _NOT_JSON,
    "merge patch not json": _NOT_JSON,
    "list bad continue": _NOT_JSON,
    "json patch: result has wrong type": _PATCH,
    "merge patch unknown field strict": _PATCH,
    "strategic: unknown field strict": _PATCH,
    "strategic: wrong type": _PATCH,
    "secret: docker config": _NOT_JSON,
    "create with two controllers": PRINTED,
    "pod: nodeSelector is immutable": PRINTED,
    "pod: env is immutable": PRINTED,
    "pod: resources are immutable": PRINTED,
    "pod: nodeName by patch": PRINTED,
    "pod put: unchanged while deleting": PRINTED,
    "statefulset: unknown policies": PRINTED,
    "job: template is immutable": PRINTED,
    "pdb: both limits": PRINTED,
    "self review: name": PRINTED,
    "self review: labels": PRINTED,
    "self review: annotations": PRINTED,
    "self review: several mistakes": PRINTED,
    "other review: name": PRINTED,
    "other review: several mistakes": PRINTED,
    "local review: name": PRINTED,
    "service: duplicate port": PRINTED,
    "node: same taint twice": PRINTED,
    "rbac: roleRef is immutable": PRINTED,
    "crd: bad rule": PRINTED,
    "crd: no storage version": PRINTED,
    "deployment: unknown strategy": PRINTED,
}

# Cases whose preparation does not work here, so there is no answer to compare.
_OWN_COUNT = "we count what is used ourselves, so a status that is written by hand changes nothing"
NOT_REPLAYED: dict[str, str] = {
    "quota: gpus exceeded": _OWN_COUNT,
    "quota: gpus left": _OWN_COUNT,
    "quota: used afterwards": _OWN_COUNT,
    "quota: objects exceeded": _OWN_COUNT,
    "custom: gone with its definition": (
        "custom objects are cleaned up by a controller, and the tests have the API server alone"
    ),
}

# Samples that are stored in another way, by their label.
_NULL = "a list that nobody sent is left out, where Go writes null"
_PROTECTED = (
    "the finalizer that keeps a volume in use from going would have to be taken off by a "
    "controller that we do not have"
)
STORED_AS_SENT = (
    "nothing here allocates devices: the kinds of resource.k8s.io are checked by their schema and "
    "stored as they were sent, without defaults"
)
_OWN_FIELD = "a field that the server itself adds or drops belongs to no writer"
OBJECTS: dict[str, str] = {
    "ClusterRole-aggregated": _NULL,
    "CSINode": _NULL,
    "HorizontalPodAutoscaler-v2": _NULL,
    "HorizontalPodAutoscaler-v2-minimal": _NULL,
    "HorizontalPodAutoscaler-v2-behavior": _NULL,
    "PersistentVolume": _PROTECTED,
    "PersistentVolumeClaim": _PROTECTED,
    "CustomResourceDefinition": _CRD,
    "CustomResourceDefinition-bare": _CRD,
    "DaemonSet-minimal": _OWN_FIELD,
    "DaemonSet-ondelete": _OWN_FIELD,
    "DaemonSet-surge": _OWN_FIELD,
    "HorizontalPodAutoscaler-v1-minimal": _OWN_FIELD,
    "Pod-lifecycle": _OWN_FIELD,
    "ResourceClaim": STORED_AS_SENT,
    "ResourceClaim-first-available": STORED_AS_SENT,
    "ResourceClaimTemplate": STORED_AS_SENT,
}
