"""Objects of each kind before anybody has set anything.

A kind's structs, and those of its lists that are always written, are there from the start: who
creates an object does not come to own `spec` itself, but what is in it. Zero values count as unset.
"""

from typing import Any, Final

from gpupool.contract.objects import Obj

_POD_SPEC: Final[Obj] = {"containers": None}
_TEMPLATE: Final[Obj] = {"metadata": {}, "spec": _POD_SPEC}
_CLAIM_SPEC: Final[Obj] = {"devices": {"requests": None}}
_ROLE_REF: Final[Obj] = {"apiGroup": "", "kind": "", "name": ""}
_SCALED: Final[Obj] = {"scaleTargetRef": {"kind": "", "name": ""}, "maxReplicas": 0}

# By apiVersion and kind; without the metadata, which all have. Not here: nothing but metadata,
# as custom kinds, whose objects start with nothing.
_BLANK: Final[dict[tuple[str, str], Obj]] = {
    ("v1", "Binding"): {"target": {}},
    ("v1", "Event"): {
        "involvedObject": {},
        "source": {},
        "firstTimestamp": None,
        "lastTimestamp": None,
        "eventTime": None,
        "reportingComponent": "",
        "reportingInstance": "",
    },
    ("v1", "LimitRange"): {"spec": {"limits": None}},
    ("v1", "Namespace"): {"spec": {}, "status": {}},
    ("v1", "Node"): {
        "spec": {},
        "status": {
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 0}},
            "nodeInfo": {
                "machineID": "",
                "systemUUID": "",
                "bootID": "",
                "kernelVersion": "",
                "osImage": "",
                "containerRuntimeVersion": "",
                "kubeletVersion": "",
                "kubeProxyVersion": "",
                "operatingSystem": "",
                "architecture": "",
            },
        },
    },
    ("v1", "PersistentVolume"): {"spec": {}, "status": {}},
    ("v1", "PersistentVolumeClaim"): {"spec": {"resources": {}}, "status": {}},
    ("v1", "Pod"): {"spec": _POD_SPEC, "status": {}},
    ("v1", "PodTemplate"): {"template": _TEMPLATE},
    ("v1", "ReplicationController"): {"spec": {}, "status": {"replicas": 0}},
    ("v1", "ResourceQuota"): {"spec": {}, "status": {}},
    ("v1", "Service"): {"spec": {}, "status": {"loadBalancer": {}}},
    ("apps/v1", "ControllerRevision"): {"data": None, "revision": 0},
    ("apps/v1", "DaemonSet"): {
        "spec": {"selector": None, "template": _TEMPLATE, "updateStrategy": {}},
        "status": {
            "currentNumberScheduled": 0,
            "numberMisscheduled": 0,
            "desiredNumberScheduled": 0,
            "numberReady": 0,
        },
    },
    ("apps/v1", "Deployment"): {
        "spec": {"selector": None, "template": _TEMPLATE, "strategy": {}},
        "status": {},
    },
    ("apps/v1", "ReplicaSet"): {
        "spec": {"selector": None, "template": _TEMPLATE},
        "status": {"replicas": 0},
    },
    ("apps/v1", "StatefulSet"): {
        "spec": {"selector": None, "template": _TEMPLATE, "serviceName": "", "updateStrategy": {}},
        "status": {"replicas": 0, "availableReplicas": 0},
    },
    ("autoscaling/v1", "HorizontalPodAutoscaler"): {
        "spec": _SCALED,
        "status": {"currentReplicas": 0, "desiredReplicas": 0},
    },
    ("autoscaling/v2", "HorizontalPodAutoscaler"): {
        "spec": _SCALED,
        "status": {"desiredReplicas": 0, "currentMetrics": None},
    },
    ("batch/v1", "CronJob"): {
        "spec": {"schedule": "", "jobTemplate": {"metadata": {}, "spec": {"template": _TEMPLATE}}},
        "status": {},
    },
    ("batch/v1", "Job"): {"spec": {"template": _TEMPLATE}, "status": {}},
    ("certificates.k8s.io/v1", "CertificateSigningRequest"): {
        "spec": {"request": None, "signerName": ""},
        "status": {},
    },
    ("coordination.k8s.io/v1", "Lease"): {"spec": {}},
    ("discovery.k8s.io/v1", "EndpointSlice"): {"addressType": "", "endpoints": None, "ports": None},
    ("events.k8s.io/v1", "Event"): {
        "eventTime": None,
        "regarding": {},
        "deprecatedSource": {},
        "deprecatedFirstTimestamp": None,
        "deprecatedLastTimestamp": None,
    },
    ("flowcontrol.apiserver.k8s.io/v1", "FlowSchema"): {
        "spec": {"priorityLevelConfiguration": {"name": ""}, "matchingPrecedence": 0},
        "status": {},
    },
    ("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration"): {
        "spec": {"type": ""},
        "status": {},
    },
    ("networking.k8s.io/v1", "IPAddress"): {"spec": {}},
    ("networking.k8s.io/v1", "Ingress"): {"spec": {}, "status": {"loadBalancer": {}}},
    ("networking.k8s.io/v1", "IngressClass"): {"spec": {}},
    ("networking.k8s.io/v1", "NetworkPolicy"): {"spec": {"podSelector": {}}},
    ("networking.k8s.io/v1", "ServiceCIDR"): {"spec": {}, "status": {}},
    ("node.k8s.io/v1", "RuntimeClass"): {"handler": ""},
    ("policy/v1", "PodDisruptionBudget"): {
        "spec": {},
        "status": {
            "disruptionsAllowed": 0,
            "currentHealthy": 0,
            "desiredHealthy": 0,
            "expectedPods": 0,
        },
    },
    ("rbac.authorization.k8s.io/v1", "ClusterRole"): {"rules": None},
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"): {"roleRef": _ROLE_REF},
    ("rbac.authorization.k8s.io/v1", "Role"): {"rules": None},
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): {"roleRef": _ROLE_REF},
    ("resource.k8s.io/v1", "DeviceClass"): {"spec": {}},
    ("resource.k8s.io/v1", "ResourceClaim"): {"spec": _CLAIM_SPEC, "status": {}},
    ("resource.k8s.io/v1", "ResourceClaimTemplate"): {
        "spec": {"metadata": {}, "spec": _CLAIM_SPEC}
    },
    ("resource.k8s.io/v1", "ResourceSlice"): {
        "spec": {"driver": "", "pool": {"name": "", "generation": 0, "resourceSliceCount": 0}}
    },
    ("scheduling.k8s.io/v1", "PriorityClass"): {"value": 0},
    ("storage.k8s.io/v1", "CSIDriver"): {"spec": {}},
    ("storage.k8s.io/v1", "CSINode"): {"spec": {"drivers": None}},
    ("storage.k8s.io/v1", "CSIStorageCapacity"): {"storageClassName": ""},
    ("storage.k8s.io/v1", "StorageClass"): {"provisioner": ""},
    ("storage.k8s.io/v1", "VolumeAttachment"): {
        "spec": {"attacher": "", "source": {}, "nodeName": ""},
        "status": {"attached": False},
    },
    ("storage.k8s.io/v1", "VolumeAttributesClass"): {"driverName": ""},
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"): {"spec": {}, "status": {}},
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding"): {"spec": {}},
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"): {
        "spec": {
            "group": "",
            "names": {"plural": "", "kind": ""},
            "scope": "",
            "versions": None,
        },
        "status": {
            "conditions": None,
            "acceptedNames": {"plural": "", "kind": ""},
            "storedVersions": None,
        },
    },
}


def blank(api_version: str, kind: str) -> dict[str, Any]:
    """Not to be changed by anybody."""
    return _BLANK_OBJECTS.get((api_version, kind), _NOTHING)


_NOTHING: Final[Obj] = {"metadata": {}}
_BLANK_OBJECTS: Final = {key: {"metadata": {}, **parts} for key, parts in _BLANK.items()}
