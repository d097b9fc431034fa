"""Steps of the scripts at which the local cluster answers differently on purpose, and why.

By script and the line of the step. docs/conformance.md shows them. A step that is listed and no
longer differs fails `make conformance`, as one does that differs and is not listed.
"""

_SERVED = "lists what is there: a real server has more groups and kinds, we have metrics.k8s.io"
_VERSION = "says that it is gpupool, and which Python it runs on"
_OWNERS = (
    "what our own controllers write has no owner in managedFields (docs/decisions/0005), where "
    "kube-controller-manager owns it"
)
_NULL = "a list that nobody sent is left out, where Go writes null"
_NODE = "the TTL controller and its annotation, and the event RegisteredNode, are not there"
_NO_NODE_FITS = (
    "our scheduler names the taint, as kube-scheduler did up to 1.34, and does not speak of claims "
    "for devices, which it does not deal in"
)
_GPU_WORDS = "pods with GPUs are checked by gpupool's webhook first, in its own words"
_PRINTED = "refusals show an object as it was sent, where a real server prints its internal Go type"
_UID = "our administrator has no uid; that of the test-bed comes from a file of tokens with uids"

DIFFERENCES: dict[str, dict[str, str]] = {
    "access": {
        """kubectl patch rolebinding jane-edits --type=merge -p '{"roleRef":{"name":"admin"}}'""": (
            _PRINTED
        ),
        "kubectl get clusterroles -l kubernetes.io/bootstrapping=rbac-defaults -o name": (
            "the roles of kube-controller-manager's parts are not there, those of gpupool's are"
        ),
    },
    "certificates": {
        "kubectl create -f - --show-managed-fields -o yaml --field-manager=me": _UID,
    },
    "discovery": {
        "kubectl version": _VERSION,
        "kubectl version -o json": _VERSION,
        "kubectl get --raw /version": _VERSION,
        "kubectl api-versions": _SERVED,
        "kubectl api-resources": _SERVED,
        "kubectl api-resources --namespaced=false --api-group=storage.k8s.io": _SERVED,
        "kubectl api-resources --verbs=list --api-group=networking.k8s.io -o name": _SERVED,
        "kubectl explain svc --output=plaintext-openapiv2": (
            "version 2 of OpenAPI is served as JSON alone, and kubectl wants it as protobuf"
        ),
        "kubectl auth whoami": _UID,
        "kubectl auth whoami -o yaml": _UID,
        "kubectl get componentstatuses": "deprecated since 1.19; there are no such components here",
        "kubectl get apiservices": _SERVED,
        "kubectl get storageclasses": "the local cluster has a default storage class",
        "kubectl get crd": "the local cluster has the kind NodePool",
        "kubectl top nodes": "the local cluster has metrics; here it has no nodes to measure",
    },
    "flow-control": {
        "kubectl patch flowschema catch-all --type=merge "
        """-p '{"spec":{"matchingPrecedence":5}}'""": _PRINTED,
        "kubectl patch prioritylevelconfiguration catch-all --type=merge "
        """-p '{"spec":{"limited":{"nominalConcurrencyShares":6}}}'""": _PRINTED,
    },
    "getting": {
        "until web kubectl get endpointslices -o custom-columns="
        "T:.addressType,P:.ports,E:.endpoints,O:.metadata.ownerReferences[0].name": _NULL,
    },
    "nodes": {
        "kubectl describe node c-node": _NODE,
        "kubectl describe node/c-node": _NODE,
        "until taint kubectl get pod tainted -o jsonpath={.status.conditions[0].message}": (
            _NO_NODE_FITS
        ),
        "until Insufficient kubectl get pod greedy -o jsonpath={.status.conditions[0].message}": (
            _NO_NODE_FITS
        ),
        "until node kubectl get pod picky -o jsonpath={.status.conditions[0].message}": (
            _NO_NODE_FITS
        ),
    },
    "patching": {
        """kubectl patch deploy d --type=merge -p '{"spec":{"replicas":"many"}}'""": (
            "the patch is shown as it was sent, where a real server prints the whole object"
        ),
        "kubectl patch deploy d --subresource=scale --type=merge "
        """-p '{"spec":{"replicas":0}}'""": (
            "Go leaves out a zero, so that a real server forgets who owns replicas when they "
            "become none, and calls that a change"
        ),
        "kubectl get deploy d -o yaml --show-managed-fields": _OWNERS,
    },
    "pods": {
        """kubectl patch pod p -p '{"spec":{"containers":[{"name":"p","command":["x"]}]}}'""": (
            _PRINTED
        ),
        """kubectl patch pod p -p '{"spec":{"nodeName":"n"}}'""": _PRINTED,
        """kubectl patch pod p -p '{"spec":{"restartPolicy":"Never"}}'""": _PRINTED,
        "kubectl create -f - -o yaml": _GPU_WORDS,
        "kubectl create -f - -o json": _GPU_WORDS,
        "kubectl create -f - --edit=false -o yaml": (
            "gpupool's webhook wires pods with GPUs to the cards that they will get"
        ),
    },
    "workloads": {
        """kubectl patch job once -p '{"spec":{"template":{"metadata":{"labels":{"x":"y"}}}}}'""": (
            _PRINTED
        ),
        "kubectl create -f - --validate=ignore": _PRINTED,
    },
    "services": {
        "kubectl describe svc b": (
            "a service that answers on this machine has its link in an annotation"
        ),
        "kubectl create -f - -o name": _PRINTED,
        "kubectl patch pvc claim --type=merge "
        """-p '{"spec":{"accessModes":["ReadWriteMany"]}}'""": (_PRINTED),
    },
    "custom": {
        "kubectl create -f - --dry-run=server -o name": _PRINTED,
    },
    "watching": {
        "ends 'DELETED w'": (
            "a pod that nothing runs goes in one step, without the change in between"
        ),
    },
}
