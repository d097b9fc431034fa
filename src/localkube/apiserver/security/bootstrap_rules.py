"""The ClusterRoles that a cluster is born with: Kubernetes' own (1.35), and one more.

Left out are only the roles of the single built-in controllers (system:controller:...): ours run
under one identity. In a group's place, "core" is the group without a name.
"""

from kubeclient.objects import Obj

READ = "get list watch"
WRITE = "create delete deletecollection patch update"
READ_WRITE = "create delete deletecollection get list patch update watch"
READ_UPDATE = "get list patch update watch"


def rule(verbs: str, groups: str, resources: str, names: str = "") -> Obj:
    made: Obj = {"apiGroups": ["" if group == "core" else group for group in groups.split()]}
    if names:
        made["resourceNames"] = names.split()
    return made | {"resources": resources.split(), "verbs": verbs.split()}


def urls(verbs: str, paths: str) -> Obj:
    return {"nonResourceURLs": paths.split(), "verbs": verbs.split()}


EVENTS = rule("create patch update", "core events.k8s.io", "events")
KUBERNETES_ROLES: dict[str, tuple[Obj, ...]] = {
    "cluster-admin": (
        rule("*", "*", "*"),
        urls("*", "*"),
    ),
    "system:aggregate-to-admin": (
        rule("create", "authorization.k8s.io", "localsubjectaccessreviews"),
        rule(READ_WRITE, "rbac.authorization.k8s.io", "rolebindings roles"),
    ),
    "system:aggregate-to-edit": (
        rule(
            READ, "core", "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy"
        ),
        rule("impersonate", "core", "serviceaccounts"),
        rule(WRITE, "core", "pods pods/attach pods/exec pods/portforward pods/proxy"),
        rule("create", "core", "pods/eviction"),
        rule(
            WRITE,
            "core",
            "configmaps persistentvolumeclaims replicationcontrollers "
            "replicationcontrollers/scale secrets serviceaccounts services "
            "services/proxy",
        ),
        rule("create", "core", "serviceaccounts/token"),
        rule(WRITE, "core events.k8s.io", "events"),
        rule(
            WRITE,
            "apps",
            "daemonsets deployments deployments/rollback deployments/scale "
            "replicasets replicasets/scale statefulsets statefulsets/scale",
        ),
        rule(WRITE, "autoscaling", "horizontalpodautoscalers"),
        rule(WRITE, "batch", "cronjobs jobs"),
        rule(
            WRITE,
            "extensions",
            "daemonsets deployments deployments/rollback deployments/scale ingresses "
            "networkpolicies replicasets replicasets/scale "
            "replicationcontrollers/scale",
        ),
        rule(WRITE, "policy", "poddisruptionbudgets"),
        rule(WRITE, "networking.k8s.io", "ingresses networkpolicies"),
        rule(READ_WRITE, "coordination.k8s.io", "leases"),
        rule(WRITE, "resource.k8s.io", "resourceclaims resourceclaimtemplates"),
    ),
    "system:aggregate-to-view": (
        rule(
            READ,
            "core",
            "configmaps endpoints persistentvolumeclaims "
            "persistentvolumeclaims/status pods replicationcontrollers "
            "replicationcontrollers/scale serviceaccounts services services/status",
        ),
        rule(
            READ,
            "core",
            "bindings limitranges namespaces/status pods/log pods/status "
            "replicationcontrollers/status resourcequotas resourcequotas/status",
        ),
        rule(READ, "core", "namespaces"),
        rule(READ, "core events.k8s.io", "events"),
        rule(READ, "discovery.k8s.io", "endpointslices"),
        rule(
            READ,
            "apps",
            "controllerrevisions daemonsets daemonsets/status deployments "
            "deployments/scale deployments/status replicasets replicasets/scale "
            "replicasets/status statefulsets statefulsets/scale statefulsets/status",
        ),
        rule(READ, "autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status"),
        rule(READ, "batch", "cronjobs cronjobs/status jobs jobs/status"),
        rule(
            READ,
            "extensions",
            "daemonsets daemonsets/status deployments deployments/scale "
            "deployments/status ingresses ingresses/status networkpolicies "
            "replicasets replicasets/scale replicasets/status "
            "replicationcontrollers/scale",
        ),
        rule(READ, "policy", "poddisruptionbudgets poddisruptionbudgets/status"),
        rule(READ, "networking.k8s.io", "ingresses ingresses/status networkpolicies"),
        rule(
            READ, "resource.k8s.io", "resourceclaims resourceclaims/status resourceclaimtemplates"
        ),
    ),
    "system:auth-delegator": (
        rule("create", "authentication.k8s.io", "tokenreviews"),
        rule("create", "authorization.k8s.io", "subjectaccessreviews"),
    ),
    "system:basic-user": (
        rule("create", "authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews"),
        rule("create", "authentication.k8s.io", "selfsubjectreviews"),
    ),
    "system:certificates.k8s.io:certificatesigningrequests:nodeclient": (
        rule("create", "certificates.k8s.io", "certificatesigningrequests/nodeclient"),
    ),
    "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient": (
        rule("create", "certificates.k8s.io", "certificatesigningrequests/selfnodeclient"),
    ),
    "system:certificates.k8s.io:kube-apiserver-client-approver": (
        rule("approve", "certificates.k8s.io", "signers", "kubernetes.io/kube-apiserver-client"),
    ),
    "system:certificates.k8s.io:kube-apiserver-client-kubelet-approver": (
        rule(
            "approve",
            "certificates.k8s.io",
            "signers",
            "kubernetes.io/kube-apiserver-client-kubelet",
        ),
    ),
    "system:certificates.k8s.io:kubelet-serving-approver": (
        rule("approve", "certificates.k8s.io", "signers", "kubernetes.io/kubelet-serving"),
    ),
    "system:certificates.k8s.io:legacy-unknown-approver": (
        rule("approve", "certificates.k8s.io", "signers", "kubernetes.io/legacy-unknown"),
    ),
    "system:discovery": (
        urls(
            "get",
            "/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz "
            "/version /version/",
        ),
    ),
    "system:heapster": (
        rule(READ, "core", "events namespaces nodes pods"),
        rule(READ, "extensions", "deployments"),
    ),
    "system:kube-aggregator": (rule(READ, "core", "endpoints services"),),
    "system:kube-controller-manager": (
        EVENTS,
        rule("create", "coordination.k8s.io", "leases"),
        rule("get update", "coordination.k8s.io", "leases", "kube-controller-manager"),
        rule("create", "core", "secrets serviceaccounts"),
        rule("delete", "core", "secrets"),
        rule("get", "core", "configmaps namespaces secrets serviceaccounts"),
        rule("update", "core", "secrets serviceaccounts"),
        rule("create", "authentication.k8s.io", "tokenreviews"),
        rule("create", "authorization.k8s.io", "subjectaccessreviews"),
        rule("list watch", "*", "*"),
        rule("create", "core", "serviceaccounts/token"),
    ),
    "system:kube-dns": (rule("list watch", "core", "endpoints services"),),
    "system:kube-scheduler": (
        EVENTS,
        rule("create", "coordination.k8s.io", "leases"),
        rule("get list update watch", "coordination.k8s.io", "leases", "kube-scheduler"),
        rule(READ_WRITE, "coordination.k8s.io", "leasecandidates"),
        rule(READ, "core", "nodes"),
        rule("delete get list watch", "core", "pods"),
        rule("create", "core", "bindings pods/binding"),
        rule("patch update", "core", "pods/status"),
        rule(READ, "core", "replicationcontrollers services"),
        rule(READ, "apps extensions", "replicasets"),
        rule(READ, "apps", "statefulsets"),
        rule(READ, "policy", "poddisruptionbudgets"),
        rule(READ, "core", "persistentvolumeclaims persistentvolumes"),
        rule("create", "authentication.k8s.io", "tokenreviews"),
        rule("create", "authorization.k8s.io", "subjectaccessreviews"),
        rule(READ, "storage.k8s.io", "csinodes"),
        rule(READ, "storage.k8s.io", "volumeattachments"),
        rule(READ, "core", "namespaces"),
        rule(READ, "storage.k8s.io", "csidrivers"),
        rule(READ, "storage.k8s.io", "csistoragecapacities"),
        rule(READ, "resource.k8s.io", "deviceclasses"),
        rule(READ_UPDATE, "resource.k8s.io", "resourceclaims"),
        rule(READ_UPDATE, "resource.k8s.io", "resourceclaims/status"),
        rule("update", "core", "pods/finalizers"),
        rule(READ, "resource.k8s.io", "resourceslices"),
    ),
    "system:kubelet-api-admin": (
        rule(READ, "core", "nodes"),
        rule("proxy", "core", "nodes"),
        rule("*", "core", "nodes/log nodes/metrics nodes/proxy nodes/stats"),
        rule("*", "core", "nodes/configz nodes/healthz nodes/pods"),
    ),
    "system:monitoring": (
        urls("get", "/healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/*"),
        rule("get", "core", "nodes/metrics"),
    ),
    "system:node": (
        rule("create", "authentication.k8s.io", "tokenreviews"),
        rule("create", "authorization.k8s.io", "localsubjectaccessreviews subjectaccessreviews"),
        rule(READ, "core", "services"),
        rule("create get list watch", "core", "nodes"),
        rule("patch update", "core", "nodes/status"),
        rule("patch update", "core", "nodes"),
        EVENTS,
        rule(READ, "core", "pods"),
        rule("create delete", "core", "pods"),
        rule("patch update", "core", "pods/status"),
        rule("create", "core", "pods/eviction"),
        rule(READ, "core", "configmaps secrets"),
        rule("get", "core", "persistentvolumeclaims persistentvolumes"),
        rule("get", "core", "endpoints"),
        rule("create get list watch", "certificates.k8s.io", "certificatesigningrequests"),
        rule("create delete get patch update", "coordination.k8s.io", "leases"),
        rule("get", "storage.k8s.io", "volumeattachments"),
        rule("create", "core", "serviceaccounts/token"),
        rule("get patch update", "core", "persistentvolumeclaims/status"),
        rule(READ, "storage.k8s.io", "csidrivers"),
        rule("create delete get patch update", "storage.k8s.io", "csinodes"),
        rule(READ, "node.k8s.io", "runtimeclasses"),
        rule("get", "resource.k8s.io", "resourceclaims"),
        rule("deletecollection", "resource.k8s.io", "resourceslices"),
        rule("get", "core", "serviceaccounts"),
    ),
    "system:node-bootstrapper": (
        rule("create get list watch", "certificates.k8s.io", "certificatesigningrequests"),
    ),
    "system:node-problem-detector": (
        rule("get", "core", "nodes"),
        rule("patch", "core", "nodes/status"),
        EVENTS,
    ),
    "system:node-proxier": (
        rule("list watch", "core", "endpoints services"),
        rule(READ, "core", "nodes"),
        EVENTS,
        rule("list watch", "networking.k8s.io", "servicecidrs"),
        rule("list watch", "discovery.k8s.io", "endpointslices"),
    ),
    "system:persistent-volume-provisioner": (
        rule("create delete get list watch", "core", "persistentvolumes"),
        rule("get list update watch", "core", "persistentvolumeclaims"),
        rule(READ, "storage.k8s.io", "storageclasses"),
        rule("watch", "core", "events"),
        EVENTS,
    ),
    "system:public-info-viewer": (urls("get", "/healthz /livez /readyz /version /version/"),),
    "system:service-account-issuer-discovery": (
        urls(
            "get",
            "/.well-known/openid-configuration /.well-known/openid-configuration/ "
            "/openid/v1/jwks /openid/v1/jwks/",
        ),
    ),
    "system:volume-scheduler": (
        rule(READ_UPDATE, "core", "persistentvolumes"),
        rule(READ, "storage.k8s.io", "storageclasses"),
        rule(READ_UPDATE, "core", "persistentvolumeclaims"),
    ),
    # All built-in controllers act as one. Among them are the garbage collector and the namespace
    # controller, which may delete anything; but none may impersonate, bind or escalate.
    "localkube:controllers": (rule(READ_WRITE, "*", "*"),),
}

# By name: the label that others gather it by, and the label that it gathers.
AGGREGATED_ROLES = {
    "admin": ("", "aggregate-to-admin"),
    "edit": ("aggregate-to-admin", "aggregate-to-edit"),
    "view": ("aggregate-to-edit", "aggregate-to-view"),
}
