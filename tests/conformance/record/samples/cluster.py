"""Configuration, network, storage, nodes, access and extension objects."""

from __future__ import annotations

from tests.conformance.record.case import Json
from tests.conformance.record.objects import container, crd, obj, service
from tests.conformance.record.samples.sample import Sample

_CORE = "/api/v1/namespaces/{ns}"
_RBAC = "rbac.authorization.k8s.io/v1"
_HOOKS = "admissionregistration.k8s.io/v1"
_DRA = "resource.k8s.io/v1"
_RULE = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
_HOOK_RULE = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"],
              "operations": ["CREATE"]}
# Never called: no object in the recording matches this selector.
_QUIET = {"matchLabels": {"gpupool.io/never": "true"}}
_HOOK = {"name": "a.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
         "rules": [_HOOK_RULE], "objectSelector": _QUIET}


def _core(label: str, resource: str, body: Json) -> Sample:
    return Sample(label, f"{_CORE}/{resource}", body)


def _apart(label: str, resource: str, body: Json) -> Sample:
    """Not among the other samples, because it would change them."""
    return Sample(label, f"/api/v1/namespaces/sample-namespace/{resource}", body)


def _named(label: str, path: str, api_version: str, kind: str, **parts: Json) -> Sample:
    """A sample whose object is named after its label."""
    if "{ns}" in path or not api_version.startswith("v1"):
        path = f"/apis/{api_version}/{path}"
    return Sample(label, path, obj(api_version, kind, label.lower(), **parts))


def _service(label: str, **spec: Json) -> Sample:
    return _core(f"Service-{label}", "services", service(f"service-{label}", **spec))


def _node(label: str, **parts: Json) -> Sample:
    return Sample(f"Node-{label}", "/api/v1/nodes", obj("v1", "Node", f"node-{label}", **parts))


_SERVICES = (
    _service("clusterip"),
    _service("headless", clusterIP="None"),
    _service("headless-bare", clusterIP="None", ports=None, selector=None),
    _service("nodeport", type="NodePort"),
    _service("loadbalancer", type="LoadBalancer", ports=[
        {"name": "a", "port": 80, "targetPort": "web"}, {"name": "b", "port": 53,
                                                        "protocol": "UDP"}]),
    _service("loadbalancer-local", type="LoadBalancer", externalTrafficPolicy="Local",
             allocateLoadBalancerNodePorts=False),
    _service("externalname", type="ExternalName", externalName="example.com", ports=None,
             selector=None),
    _service("affinity", sessionAffinity="ClientIP", externalIPs=["1.2.3.4"],
             publishNotReadyAddresses=True),
    _service("dual", ipFamilyPolicy="PreferDualStack"),
)

_CONFIG = (
    Sample("Namespace", "/api/v1/namespaces", obj("v1", "Namespace", "sample-namespace")),
    _core("ConfigMap", "configmaps", obj("v1", "ConfigMap", "configmap", data={"a": "1"},
                                         binaryData={"b": "AAE="}, immutable=False)),
    _core("Secret-opaque", "secrets", obj("v1", "Secret", "secret", stringData={"a": "b"},
                                          data={"c": "ZA=="})),
    _core("Secret-tls", "secrets", obj("v1", "Secret", "secret-tls", type="kubernetes.io/tls",
                                       data={"tls.crt": "", "tls.key": ""})),
    _core("ServiceAccount", "serviceaccounts", obj("v1", "ServiceAccount", "sa")),
    _apart("LimitRange", "limitranges", obj("v1", "LimitRange", "lr", spec={"limits": [
        {"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "10m"},
         "default": {"memory": "1Gi"}},
        {"type": "Pod", "max": {"memory": "8Gi"}}]})),
    _apart("ResourceQuota", "resourcequotas", obj("v1", "ResourceQuota", "rq", spec={
        "hard": {"requests.nvidia.com/gpu": 100, "pods": "1000", "limits.cpu": "1k"}})),
    _apart("ResourceQuota-scoped", "resourcequotas", obj("v1", "ResourceQuota", "rqs", spec={
        "hard": {"pods": 900}, "scopes": ["BestEffort"]})),
    _core("PersistentVolumeClaim", "persistentvolumeclaims", obj(
        "v1", "PersistentVolumeClaim", "pvc", spec={
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}})),
    Sample("PersistentVolume", "/api/v1/persistentvolumes", obj(
        "v1", "PersistentVolume", "pv", spec={
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/data"}})),
    _core("Endpoints", "endpoints", obj("v1", "Endpoints", "ep", subsets=[
        {"addresses": [{"ip": "10.1.2.3"}], "ports": [{"port": 80}]}])),
    _core("PodTemplate", "podtemplates", obj("v1", "PodTemplate", "pt", template={
        "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container()]}})),
    _core("Event", "events", obj(
        "v1", "Event", "event", type="Normal", reason="Started", message="Started container c",
        involvedObject={"kind": "Pod", "namespace": "{ns}", "name": "p",
                        "fieldPath": "spec.containers{c}"},
        source={"component": "kubelet", "host": "node-1"}, count=2,
        firstTimestamp="2026-01-01T00:00:00Z", lastTimestamp="2026-01-01T00:01:00Z")),
    _named("Event-new", "namespaces/{ns}/events", "events.k8s.io/v1", "Event", type="Warning",
           reason="FailedScheduling", note="0/1 nodes are available.", action="Scheduling",
           eventTime="2026-01-01T00:00:00.000001Z", reportingController="gpupool-scheduler",
           reportingInstance="gpupool-scheduler-0",
           regarding={"kind": "Pod", "namespace": "{ns}", "name": "p"}),
)

_NODES = (
    _node("minimal"),
    _node("gpu", spec={"podCIDR": "10.244.0.0/24", "taints": [
        {"key": "nvidia.com/gpu", "effect": "NoSchedule"}], "unschedulable": True},
        metadata={"labels": {"node-role.kubernetes.io/gpu": "", "cgpu": "true"}},
        status={"capacity": {"cpu": 8, "memory": "64Gi", "nvidia.com/gpu": 4, "pods": "110"},
                "addresses": [{"type": "InternalIP", "address": "10.9.9.9"},
                              {"type": "Hostname", "address": "node-gpu"}],
                "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
                "nodeInfo": {"kubeletVersion": "v1.35.8", "osImage": "Debian",
                             "kernelVersion": "6.1", "containerRuntimeVersion": "sim://1"}}),
)

_NETWORK = (
    _named("Ingress", "namespaces/{ns}/ingresses", "networking.k8s.io/v1", "Ingress", spec={
        "rules": [{"host": "a.example.com", "http": {"paths": [{
            "path": "/", "pathType": "Prefix",
            "backend": {"service": {"name": "s", "port": {"number": 80}}}}]}}]}),
    _named("IngressClass", "ingressclasses", "networking.k8s.io/v1", "IngressClass",
           spec={"controller": "example.com/c"}),
    _named("NetworkPolicy", "namespaces/{ns}/networkpolicies", "networking.k8s.io/v1",
           "NetworkPolicy", spec={"podSelector": {}}),
    _named("NetworkPolicy-both", "namespaces/{ns}/networkpolicies", "networking.k8s.io/v1",
           "NetworkPolicy", spec={
               "podSelector": {}, "egress": [{}],
               "ingress": [{"ports": [{"port": 80}], "from": [{"podSelector": {}}]}]}),
    _named("EndpointSlice", "namespaces/{ns}/endpointslices", "discovery.k8s.io/v1",
           "EndpointSlice", addressType="IPv4", ports=[{"port": 80}],
           endpoints=[{"addresses": ["10.1.2.3"]}]),
    _named("Lease", "namespaces/{ns}/leases", "coordination.k8s.io/v1", "Lease", spec={
        "holderIdentity": "me", "leaseDurationSeconds": 15,
        "renewTime": "2026-01-01T00:00:00.500000Z"}),
    _named("StorageClass", "storageclasses", "storage.k8s.io/v1", "StorageClass",
           provisioner="example.com/p"),
    _named("CSIDriver", "csidrivers", "storage.k8s.io/v1", "CSIDriver", spec={}),
    _named("CSINode", "csinodes", "storage.k8s.io/v1", "CSINode", spec={"drivers": []}),
    _named("VolumeAttachment", "volumeattachments", "storage.k8s.io/v1", "VolumeAttachment",
           spec={"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "pv"}}),
    _named("CSIStorageCapacity", "namespaces/{ns}/csistoragecapacities", "storage.k8s.io/v1",
           "CSIStorageCapacity", storageClassName="s", capacity="1Gi"),
    _named("PriorityClass", "priorityclasses", "scheduling.k8s.io/v1", "PriorityClass",
           value=1000),
    _named("PriorityClass-never", "priorityclasses", "scheduling.k8s.io/v1", "PriorityClass",
           value=-5, preemptionPolicy="Never", description="batch"),
    _named("RuntimeClass", "runtimeclasses", "node.k8s.io/v1", "RuntimeClass", handler="nvidia"),
)

_ACCESS = (
    _named("Role", "namespaces/{ns}/roles", _RBAC, "Role", rules=[_RULE]),
    _named("ClusterRole", "clusterroles", _RBAC, "ClusterRole", rules=[_RULE]),
    _named("ClusterRole-aggregated", "clusterroles", _RBAC, "ClusterRole", aggregationRule={
        "clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}),
    _named("RoleBinding", "namespaces/{ns}/rolebindings", _RBAC, "RoleBinding",
           roleRef={"kind": "Role", "name": "role"},
           subjects=[{"kind": "ServiceAccount", "name": "sa"}, {"kind": "User", "name": "u"},
                     {"kind": "Group", "name": "g"}]),
    _named("ClusterRoleBinding", "clusterrolebindings", _RBAC, "ClusterRoleBinding",
           roleRef={"kind": "ClusterRole", "name": "view"},
           subjects=[{"kind": "ServiceAccount", "name": "sa", "namespace": "{ns}"}]),
)

_EXTENSION = (
    _named("MutatingWebhookConfiguration", "mutatingwebhookconfigurations", _HOOKS,
           "MutatingWebhookConfiguration", webhooks=[
               _HOOK | {"clientConfig": {"service": {"name": "s", "namespace": "n"}}}]),
    _named("ValidatingWebhookConfiguration", "validatingwebhookconfigurations", _HOOKS,
           "ValidatingWebhookConfiguration", webhooks=[
               _HOOK | {"clientConfig": {"url": "https://127.0.0.1:1/x"}}]),
    _named("ValidatingAdmissionPolicy", "validatingadmissionpolicies", _HOOKS,
           "ValidatingAdmissionPolicy", spec={
               "matchConstraints": {"resourceRules": [_HOOK_RULE], "objectSelector": _QUIET},
               "validations": [{"expression": "true"}]}),
    _named("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", _HOOKS,
           "ValidatingAdmissionPolicyBinding", spec={
               "policyName": "validatingadmissionpolicy", "validationActions": ["Deny"]}),
    Sample("CustomResourceDefinition",
           "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
           crd("widgets", "Widget", {"spec": {"type": "object", "properties": {
               "size": {"type": "integer", "default": 3}}}}, group="sample.example.com",
               subresources={"status": {}})),
    Sample("CustomResourceDefinition-bare",
           "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
           obj("apiextensions.k8s.io/v1", "CustomResourceDefinition", "gadgets.bare.example.com",
               spec={"group": "bare.example.com", "scope": "Cluster",
                     "names": {"plural": "gadgets", "kind": "Gadget"},
                     "versions": [{"name": "v1", "served": True, "storage": True, "schema": {
                         "openAPIV3Schema": {"type": "object",
                                             "x-kubernetes-preserve-unknown-fields": True}}}]})),
    _named("APIService", "apiservices", "apiregistration.k8s.io/v1", "APIService",
           metadata={"name": "v1beta1.absent.example.com"}, spec={
               "group": "absent.example.com", "version": "v1beta1",
               "groupPriorityMinimum": 100, "versionPriority": 100,
               "insecureSkipTLSVerify": True,
               "service": {"name": "s", "namespace": "n"}}),
)

_REQUEST = {"name": "gpu", "exactly": {"deviceClassName": "deviceclass"}}

_DEVICES = (
    _named("DeviceClass", "deviceclasses", _DRA, "DeviceClass", spec={"selectors": [
        {"cel": {"expression": "device.driver == 'gpu.example.com'"}}]}),
    _named("ResourceSlice", "resourceslices", _DRA, "ResourceSlice", spec={
        "driver": "gpu.example.com", "nodeName": "n",
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "gpu-0", "attributes": {"model": {"string": "T4"}},
                     "capacity": {"memory": {"value": "16Gi"}}}]}),
    _named("ResourceClaim", "namespaces/{ns}/resourceclaims", _DRA, "ResourceClaim",
           spec={"devices": {"requests": [_REQUEST]}}),
    _named("ResourceClaim-first-available", "namespaces/{ns}/resourceclaims", _DRA,
           "ResourceClaim", spec={"devices": {"requests": [{"name": "gpu", "firstAvailable": [
               {"name": "a", "deviceClassName": "deviceclass"}]}]}}),
    _named("ResourceClaimTemplate", "namespaces/{ns}/resourceclaimtemplates", _DRA,
           "ResourceClaimTemplate", spec={"spec": {"devices": {"requests": [_REQUEST]}}}),
)

SAMPLES = (
    *_SERVICES, *_CONFIG, *_NODES, *_NETWORK, *_ACCESS, *_EXTENSION, *_DEVICES,
)
