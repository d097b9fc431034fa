"""Pods: one sample for each part of the spec that is defaulted."""

from __future__ import annotations

from tests.conformance.record.case import Json
from tests.conformance.record.objects import container, pod
from tests.conformance.record.samples.sample import Sample

_HTTP = {"httpGet": {"port": 80}}
_SELECTOR = {"matchLabels": {"app": "x"}}
_TERM = {"labelSelector": _SELECTOR, "topologyKey": "kubernetes.io/hostname"}
_NODE_TERM = {"matchExpressions": [{"key": "aliyun.accelerator/nvidia_name", "operator": "Exists"}]}


def _pod(label: str, *containers: Json, **spec: Json) -> Sample:
    name = label.lower()
    metadata = spec.pop("metadata", None)
    body = pod(f"pod-{name}", *containers, metadata=metadata, **spec)
    return Sample(f"Pod-{label}", "/api/v1/namespaces/{ns}/pods", body)


def _mounted(*volumes: Json, label: str) -> Sample:
    mounts = [{"name": volume["name"], "mountPath": f"/{volume['name']}"} for volume in volumes]
    return _pod(label, container(volumeMounts=mounts), volumes=list(volumes))


_VOLUMES = (
    {"name": "empty", "emptyDir": {}},
    {"name": "memory", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
    {"name": "host", "hostPath": {"path": "/tmp"}},
    {"name": "host-typed", "hostPath": {"path": "/dev/null", "type": "CharDevice"}},
    {"name": "secret", "secret": {"secretName": "s"}},
    {"name": "config", "configMap": {"name": "c", "items": [{"key": "a", "path": "b"}]}},
    {"name": "claim", "persistentVolumeClaim": {"claimName": "p"}},
    {"name": "nfs", "nfs": {"server": "s", "path": "/p"}},
    {"name": "image", "image": {"reference": "example.com/data:latest"}},
    {"name": "csi", "csi": {"driver": "d.example.com"}},
    {
        "name": "downward",
        "downwardAPI": {
            "items": [
                {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
                {
                    "path": "cpu",
                    "resourceFieldRef": {"containerName": "c", "resource": "limits.cpu"},
                },
            ]
        },
    },
    {
        "name": "projected",
        "projected": {
            "sources": [
                {"serviceAccountToken": {"path": "token"}},
                {"configMap": {"name": "c"}},
                {"secret": {"name": "s"}},
                {
                    "downwardAPI": {
                        "items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]
                    }
                },
            ]
        },
    },
    {
        "name": "ephemeral",
        "ephemeral": {
            "volumeClaimTemplate": {
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1Gi"}},
                }
            }
        },
    },
)

# Volumes of storage systems, which the local cluster stores but does not mount.
_STORAGE = (
    {
        "name": "iscsi",
        "iscsi": {"targetPortal": "10.0.0.1", "iqn": "iqn.2001-04.com.example:a", "lun": 0},
    },
    {"name": "fc", "fc": {"targetWWNs": ["5"], "lun": 0}},
    {"name": "flex", "flexVolume": {"driver": "example.com/d"}},
    {"name": "azure-file", "azureFile": {"secretName": "s", "shareName": "h"}},
    {
        "name": "azure-disk",
        "azureDisk": {"diskName": "d", "diskURI": "https://a.blob.core.windows.net/c/d.vhd"},
    },
    {"name": "ebs", "awsElasticBlockStore": {"volumeID": "v"}},
    {"name": "gce", "gcePersistentDisk": {"pdName": "p"}},
    {"name": "cephfs", "cephfs": {"monitors": ["m"]}},
    {"name": "vsphere", "vsphereVolume": {"volumePath": "/v"}},
    {"name": "portworx", "portworxVolume": {"volumeID": "v"}},
    {
        "name": "scaleio",
        "scaleIO": {
            "gateway": "https://g",
            "system": "s",
            "volumeName": "v",
            "secretRef": {"name": "s"},
        },
    },
    {"name": "storageos", "storageos": {"volumeName": "v", "volumeNamespace": "n"}},
    {"name": "rbd", "rbd": {"monitors": ["m"], "image": "i"}},
    {"name": "cinder", "cinder": {"volumeID": "v"}},
    {"name": "glusterfs", "glusterfs": {"endpoints": "e", "path": "p"}},
    {"name": "quobyte", "quobyte": {"registry": "h:1", "volume": "v"}},
)

_ENV = [
    {"name": "LITERAL", "value": "x"},
    {"name": "EMPTY"},
    {"name": "FIELD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['a/b']"}}},
    {"name": "RESOURCE", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
    {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
    {
        "name": "CONFIG",
        "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k", "optional": True}},
    },
]

_AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [_NODE_TERM]},
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "preference": _NODE_TERM}
        ],
    },
    "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_TERM]},
    "podAntiAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 100, "podAffinityTerm": _TERM}
        ]
    },
}

SAMPLES = (
    _pod("minimal"),
    _pod("latest", container(image="busybox")),
    _pod("digest", container(image="example.com/a@sha256:" + "0" * 64)),
    _pod(
        "probes",
        container(
            livenessProbe=_HTTP,
            readinessProbe={"tcpSocket": {"port": "web"}, "periodSeconds": 3},
            startupProbe={"exec": {"command": ["true"]}, "failureThreshold": 30},
            ports=[{"name": "web", "containerPort": 80}],
        ),
        container("grpc", livenessProbe={"grpc": {"port": 90}}),
        container(
            "https",
            readinessProbe={
                "httpGet": {
                    "path": "/ok",
                    "port": 443,
                    "scheme": "HTTPS",
                    "httpHeaders": [{"name": "X-A", "value": "b"}],
                }
            },
        ),
    ),
    _mounted(*_VOLUMES, label="volumes"),
    _mounted(*_STORAGE, label="storage-volumes"),
    _pod("volume-without-source", volumes=[{"name": "v"}]),
    _pod(
        "mounts",
        container(
            volumeMounts=[
                {
                    "name": "v",
                    "mountPath": "/a",
                    "subPath": "s",
                    "readOnly": True,
                    "recursiveReadOnly": "IfPossible",
                    "mountPropagation": "None",
                }
            ],
            volumeDevices=[],
        ),
        volumes=[{"name": "v"}],
    ),
    _pod(
        "init",
        initContainers=[
            container("first", command=["true"]),
            container("side", restartPolicy="Always", startupProbe={"tcpSocket": {"port": 1}}),
        ],
    ),
    _pod(
        "env",
        container(
            env=_ENV,
            envFrom=[
                {"configMapRef": {"name": "c"}},
                {"prefix": "P_", "secretRef": {"name": "s", "optional": True}},
            ],
            resources={"limits": {"cpu": "1"}},
        ),
    ),
    _pod(
        "hostnetwork",
        container(ports=[{"containerPort": 80}]),
        hostNetwork=True,
        dnsPolicy="ClusterFirstWithHostNet",
        hostPID=True,
        hostIPC=True,
    ),
    _pod(
        "ports",
        container(
            ports=[
                {"containerPort": 80},
                {
                    "name": "dns",
                    "containerPort": 53,
                    "protocol": "UDP",
                    "hostPort": 5353,
                    "hostIP": "127.0.0.1",
                },
            ]
        ),
    ),
    _pod(
        "lifecycle",
        container(lifecycle={"postStart": {"exec": {"command": ["true"]}}, "preStop": _HTTP}),
        container("sleep", lifecycle={"preStop": {"sleep": {"seconds": 3}}}),
        container("signal", lifecycle={"stopSignal": "SIGUSR1"}),
        os={"name": "linux"},
    ),
    _pod(
        "spread",
        topologySpreadConstraints=[
            {
                "maxSkew": 1,
                "topologyKey": "zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": _SELECTOR,
            },
            {
                "maxSkew": 2,
                "topologyKey": "zone",
                "whenUnsatisfiable": "ScheduleAnyway",
                "minDomains": None,
                "nodeTaintsPolicy": "Honor",
                "matchLabelKeys": ["h"],
                "labelSelector": _SELECTOR,
            },
        ],
    ),
    _pod("affinity", affinity=_AFFINITY, metadata={"labels": {"app": "x"}}),
    _pod(
        "security",
        container(
            securityContext={
                "privileged": False,
                "runAsUser": 0,
                "capabilities": {"add": ["SYS_ADMIN"]},
                "seccompProfile": {"type": "RuntimeDefault"},
                "allowPrivilegeEscalation": False,
            }
        ),
        securityContext={
            "fsGroup": 1,
            "runAsNonRoot": False,
            "supplementalGroups": [2],
            "sysctls": [{"name": "kernel.shm_rmid_forced", "value": "1"}],
        },
    ),
    _pod(
        "tolerations",
        tolerations=[
            {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
            {
                "key": "node.kubernetes.io/not-ready",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 5,
            },
            {"key": "a", "value": "b"},
        ],
    ),
    _pod("gpu", container(resources={"limits": {"nvidia.com/gpu": 1}})),
    _pod(
        "gpu-shared",
        container(
            resources={"limits": {"aliyun.com/gpu-mem": 3, "aliyun.com/gpu-core.percentage": "30"}}
        ),
        metadata={"labels": {"aliyun.com/gpu-count": "1"}},
    ),
    _pod("gpu-alpha", container(resources={"limits": {"alpha.kubernetes.io/nvidia-gpu": 1}})),
    _pod("guaranteed", container(resources={"limits": {"cpu": 1, "memory": "1Gi"}})),
    _pod(
        "burstable",
        container(resources={"requests": {"cpu": 0.5, "memory": "1.5Gi"}}),
        container(
            "big",
            resources={
                "requests": {"cpu": "0.1", "memory": "1048576", "ephemeral-storage": "1e3"},
                "limits": {"memory": "2048Mi", "hugepages-2Mi": "4Mi"},
            },
        ),
    ),
    _pod(
        "quantities",
        container(
            resources={
                "limits": {
                    "cpu": "1000m",
                    "memory": "1024Ki",
                    "example.com/a": "1k",
                    "example.com/b": "1e3",
                    "example.com/c": "1024",
                    "example.com/d": "1Ki",
                    "ephemeral-storage": "1500M",
                }
            }
        ),
    ),
    _pod(
        "resize",
        container(
            resources={"requests": {"cpu": "1"}},
            resizePolicy=[{"resourceName": "cpu", "restartPolicy": "RestartContainer"}],
        ),
    ),
    _pod("podlevel", resources={"limits": {"cpu": "2", "memory": "1Gi"}}),
    _pod(
        "claims",
        container(resources={"claims": [{"name": "g"}]}),
        resourceClaims=[{"name": "g", "resourceClaimTemplateName": "t"}],
    ),
    _pod("gated", schedulingGates=[{"name": "example.com/wait"}], schedulerName="other"),
    _pod(
        "never",
        restartPolicy="Never",
        activeDeadlineSeconds=60,
        enableServiceLinks=False,
        terminationGracePeriodSeconds=0,
        automountServiceAccountToken=False,
    ),
    _pod("prioritised", priorityClassName="system-node-critical"),
    _pod("bound", nodeName="node-1"),
    _pod(
        "names",
        hostname="h",
        subdomain="s",
        setHostnameAsFQDN=True,
        dnsPolicy="None",
        dnsConfig={"nameservers": ["10.0.0.9"], "options": [{"name": "ndots", "value": "2"}]},
        hostAliases=[{"ip": "127.0.0.1", "hostnames": ["x"]}],
        shareProcessNamespace=True,
    ),
    _pod(
        "tty",
        container(
            stdin=True,
            tty=True,
            workingDir="/",
            args=["a"],
            command=["b"],
            imagePullPolicy="Never",
            terminationMessagePolicy="File",
        ),
        imagePullSecrets=[{"name": "s"}],
    ),
    _pod(
        "status-sent",
        metadata={
            "generation": 7,
            "selfLink": "/x",
            "uid": "u",
            "creationTimestamp": "2020-01-01T00:00:00Z",
        },
    ),
)
