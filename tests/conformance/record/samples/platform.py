"""Network, storage, access and extension objects."""

from __future__ import annotations

from tests.conformance.record.objects import crd, obj
from tests.conformance.record.samples.sample import Sample, named

_CORE = "/api/v1/namespaces/{ns}"
_RBAC = "rbac.authorization.k8s.io/v1"
_HOOKS = "admissionregistration.k8s.io/v1"
_DRA = "resource.k8s.io/v1"
_RULE = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
_HOOK_RULE = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "resources": ["pods"],
    "operations": ["CREATE"],
}
# Never called: no object in the recording matches this selector.
_QUIET = {"matchLabels": {"gpupool.io/never": "true"}}
_HOOK = {
    "name": "a.example.com",
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "rules": [_HOOK_RULE],
    "objectSelector": _QUIET,
}


_NETWORK = (
    named(
        "Ingress",
        "namespaces/{ns}/ingresses",
        "networking.k8s.io/v1",
        "Ingress",
        spec={
            "rules": [
                {
                    "host": "a.example.com",
                    "http": {
                        "paths": [
                            {
                                "path": "/",
                                "pathType": "Prefix",
                                "backend": {"service": {"name": "s", "port": {"number": 80}}},
                            }
                        ]
                    },
                }
            ]
        },
    ),
    named(
        "IngressClass",
        "ingressclasses",
        "networking.k8s.io/v1",
        "IngressClass",
        spec={"controller": "example.com/c"},
    ),
    named(
        "NetworkPolicy",
        "namespaces/{ns}/networkpolicies",
        "networking.k8s.io/v1",
        "NetworkPolicy",
        spec={"podSelector": {}},
    ),
    named(
        "NetworkPolicy-both",
        "namespaces/{ns}/networkpolicies",
        "networking.k8s.io/v1",
        "NetworkPolicy",
        spec={
            "podSelector": {},
            "egress": [{}],
            "ingress": [{"ports": [{"port": 80}], "from": [{"podSelector": {}}]}],
        },
    ),
    named(
        "EndpointSlice",
        "namespaces/{ns}/endpointslices",
        "discovery.k8s.io/v1",
        "EndpointSlice",
        addressType="IPv4",
        ports=[{"port": 80}],
        endpoints=[{"addresses": ["10.1.2.3"]}],
    ),
    named(
        "Lease",
        "namespaces/{ns}/leases",
        "coordination.k8s.io/v1",
        "Lease",
        spec={
            "holderIdentity": "me",
            "leaseDurationSeconds": 15,
            "renewTime": "2026-01-01T00:00:00.500000Z",
        },
    ),
    named(
        "StorageClass",
        "storageclasses",
        "storage.k8s.io/v1",
        "StorageClass",
        provisioner="example.com/p",
    ),
    named("CSIDriver", "csidrivers", "storage.k8s.io/v1", "CSIDriver", spec={}),
    named("CSINode", "csinodes", "storage.k8s.io/v1", "CSINode", spec={"drivers": []}),
    named(
        "VolumeAttachment",
        "volumeattachments",
        "storage.k8s.io/v1",
        "VolumeAttachment",
        spec={"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "pv"}},
    ),
    named("PriorityClass", "priorityclasses", "scheduling.k8s.io/v1", "PriorityClass", value=1000),
    named(
        "PriorityClass-never",
        "priorityclasses",
        "scheduling.k8s.io/v1",
        "PriorityClass",
        value=-5,
        preemptionPolicy="Never",
        description="batch",
    ),
    named("RuntimeClass", "runtimeclasses", "node.k8s.io/v1", "RuntimeClass", handler="nvidia"),
)

_ACCESS = (
    named("Role", "namespaces/{ns}/roles", _RBAC, "Role", rules=[_RULE]),
    named("ClusterRole", "clusterroles", _RBAC, "ClusterRole", rules=[_RULE]),
    named(
        "ClusterRole-aggregated",
        "clusterroles",
        _RBAC,
        "ClusterRole",
        aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]},
    ),
    named(
        "RoleBinding",
        "namespaces/{ns}/rolebindings",
        _RBAC,
        "RoleBinding",
        roleRef={"kind": "Role", "name": "role"},
        subjects=[
            {"kind": "ServiceAccount", "name": "sa"},
            {"kind": "User", "name": "u"},
            {"kind": "Group", "name": "g"},
        ],
    ),
    named(
        "ClusterRoleBinding",
        "clusterrolebindings",
        _RBAC,
        "ClusterRoleBinding",
        roleRef={"kind": "ClusterRole", "name": "view"},
        subjects=[{"kind": "ServiceAccount", "name": "sa", "namespace": "{ns}"}],
    ),
)

_EXTENSION = (
    named(
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        _HOOKS,
        "MutatingWebhookConfiguration",
        webhooks=[_HOOK | {"clientConfig": {"service": {"name": "s", "namespace": "n"}}}],
    ),
    named(
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        _HOOKS,
        "ValidatingWebhookConfiguration",
        webhooks=[_HOOK | {"clientConfig": {"url": "https://127.0.0.1:1/x"}}],
    ),
    named(
        "ValidatingAdmissionPolicy",
        "validatingadmissionpolicies",
        _HOOKS,
        "ValidatingAdmissionPolicy",
        spec={
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": ["nowhere.example.com"],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["things"],
                    }
                ]
            },
            "validations": [{"expression": "object.spec.size < 3"}],
        },
    ),
    named(
        "ValidatingAdmissionPolicyBinding",
        "validatingadmissionpolicybindings",
        _HOOKS,
        "ValidatingAdmissionPolicyBinding",
        spec={
            "policyName": "nowhere",
            "validationActions": ["Deny"],
            "paramRef": {
                "selector": {
                    "matchLabels": {"b": "2", "a": "1"},
                    "matchExpressions": [{"key": "c", "operator": "In", "values": ["3", "4"]}],
                },
                "parameterNotFoundAction": "Allow",
            },
            "matchResources": {
                "excludeResourceRules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["DELETE"],
                        "resources": ["pods"],
                        "resourceNames": ["kept"],
                    }
                ]
            },
        },
    ),
    Sample(
        "CustomResourceDefinition",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        crd(
            "widgets",
            "Widget",
            {"spec": {"type": "object", "properties": {"size": {"type": "integer", "default": 3}}}},
            group="sample.example.com",
            subresources={"status": {}},
        ),
    ),
    Sample(
        "CustomResourceDefinition-bare",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        obj(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            "gadgets.bare.example.com",
            spec={
                "group": "bare.example.com",
                "scope": "Cluster",
                "names": {"plural": "gadgets", "kind": "Gadget"},
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "schema": {
                            "openAPIV3Schema": {
                                "type": "object",
                                "x-kubernetes-preserve-unknown-fields": True,
                            }
                        },
                    }
                ],
            },
        ),
    ),
)

_REQUEST = {"name": "gpu", "exactly": {"deviceClassName": "deviceclass"}}

_DEVICES = (
    named(
        "DeviceClass",
        "deviceclasses",
        _DRA,
        "DeviceClass",
        spec={"selectors": [{"cel": {"expression": "device.driver == 'gpu.example.com'"}}]},
    ),
    named(
        "ResourceSlice",
        "resourceslices",
        _DRA,
        "ResourceSlice",
        spec={
            "driver": "gpu.example.com",
            "nodeName": "n",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "devices": [
                {
                    "name": "gpu-0",
                    "attributes": {"model": {"string": "T4"}},
                    "capacity": {"memory": {"value": "16Gi"}},
                }
            ],
        },
    ),
    named(
        "ResourceClaim",
        "namespaces/{ns}/resourceclaims",
        _DRA,
        "ResourceClaim",
        spec={"devices": {"requests": [_REQUEST]}},
    ),
    named(
        "ResourceClaim-first-available",
        "namespaces/{ns}/resourceclaims",
        _DRA,
        "ResourceClaim",
        spec={
            "devices": {
                "requests": [
                    {
                        "name": "gpu",
                        "firstAvailable": [{"name": "a", "deviceClassName": "deviceclass"}],
                    }
                ]
            }
        },
    ),
    named(
        "ResourceClaimTemplate",
        "namespaces/{ns}/resourceclaimtemplates",
        _DRA,
        "ResourceClaimTemplate",
        spec={"spec": {"devices": {"requests": [_REQUEST]}}},
    ),
)

SAMPLES = (*_NETWORK, *_ACCESS, *_EXTENSION, *_DEVICES)
