"""Bad input for a cluster that runs. In the lines and words, CARDS is a node with one shared card,
PLAIN one without, and TAKEN a port that somebody else listens on."""

from tests.cli.bad_input.row import bad

CLUSTER = (
    bad(1, "gpu list nope", 'nodes "nope" not found', "kubectl get nodes"),
    bad(1, "gpu list ''", '"" cannot be the name of a node'),
    bad(1, "gpu list ..", '".." cannot be the name of a node'),
    bad(1, "gpu list a/b", '"a/b"', "may not contain '/'"),
    bad(1, "gpu list PLAIN", "No agent has reported any card of node PLAIN", "gpupool doctor"),
    bad(1, "gpu pods nope", 'nodes "nope" not found', "kubectl get nodes"),
    bad(1, "gpu cordon nope 0", 'nodes "nope" not found', "kubectl get nodes"),
    bad(1, "gpu cordon CARDS 9", 'Card "9" of node CARDS does not exist', "Its cards: 0"),
    bad(1, "gpu uncordon CARDS x", 'Card "x" of node CARDS does not exist', "Its cards: 0"),
    bad(1, "gpu fault nope 0 lost", 'Node "nope"', "no simulated cards", "gpupool gpu list"),
    bad(1, "gpu fault CARDS 9 lost", "there is no card 9; wanted an index below 1"),
    bad(1, "gpu fault CARDS 0 explode", '"explode" is no fault; known are xid=N, lost'),
    bad(1, "gpu fault CARDS 0 xid=abc", "wanted xid=N with N a whole number", '"xid=abc"'),
    bad(1, "gpu fault CARDS 0 xid=99999", "xid=N with N from 1 to 9999", '"xid=99999"'),
    bad(1, "gpu fault CARDS 0 xid=99999999999999", "xid=N with N from 1 to 9999"),
    bad(1, "gpu fault CARDS 0 fail=x", "wanted a function like cuMemAlloc_v2", '"fail=x"'),
    bad(1, "inspect nope", 'nodes "nope" not found', "kubectl get nodes"),
    bad(1, "inspect PLAIN", 'Node "PLAIN" does not share GPU memory', "cgpu=true"),
    bad(1, "explain nope", 'pods "nope" not found', "kubectl get pods -A"),
    bad(1, "explain pod/nope", 'pods "nope" not found', "kubectl get pods -A"),
    bad(1, "explain default/nope", 'pods "nope" not found', "kubectl get pods -A"),
    bad(1, "explain deployment/web", "deployment/web names a Deployment, wanted a pod"),
    bad(1, "explain deployment.apps/web", "names a Deployment", "kubectl get pods -A"),
    bad(1, "resize sts/web --gpu-mem 3", "sts/web names a StatefulSet, wanted a pod"),
    bad(1, "whatif -f both-pod.yaml", "default/a would be refused: admission webhook", "both."),
    bad(1, "defrag --for both-pod.yaml", "default/a would be refused", "found both."),
    bad(1, "snapshot /no/such/place/x.json", "/no/such/place/x.json: wanted a path in a directory"),
    bad(1, "explain nope/a", 'There is no namespace "nope"', "kubectl get namespaces"),
    bad(2, "explain default/a -n b", "default/a is in namespace default, -n says b"),
    bad(1, "explain a/b/c", '"a/b/c"', "may not contain '/'"),
    bad(1, "explain ''", '"" cannot be the name of a pod'),
    bad(1, "open nope", 'There is no service "nope" in namespace default', "kubernetes"),
    bad(1, "open svc/nope", 'There is no service "nope" in namespace default', "kubernetes"),
    bad(1, "open kubernetes", "of type ClusterIP", "kubectl port-forward -n default"),
    bad(1, "resize nope --gpu-mem 3", 'pods "nope" not found', "kubectl get pods -A"),
    bad(1, "resize default/nope --gpu-mem 3", 'pods "nope" not found', "kubectl get pods -A"),
    bad(1, "idle --scale-to-zero Deployment/nope", 'deployments.apps "nope" not found'),
    bad(1, "resize '' --gpu-mem 3", '"" cannot be the name of a pod'),
    *(
        bad(1, f"{line} nope", 'There is no namespace "nope"', "kubectl get namespaces")
        for line in (
            "gpu pods -n",
            "gpu pods -o json -n",
            "gpu pods CARDS -n",
            "gpu list --agents",
            "doctor -n",
            "explain a -n",
            "idle -n",
            "open a -n",
            "resize a --gpu-mem 3 -n",
        )
    ),
    bad(1, "cleanup --wait 0", "gpupool still runs", "helm uninstall gpupool"),
    bad(1, "up --name test --data-dir dir", 'Cluster "test" lives in', "Leave --data-dir out"),
    bad(1, "up --name other --port TAKEN", "Port TAKEN on 127.0.0.1", "another with --port"),
    bad(1, "console --port TAKEN", "Cannot listen on 127.0.0.1:TAKEN", "Choose another"),
    bad(1, "scheduler --health-address 127.0.0.1:TAKEN", "already in use", "Choose another"),
    bad(1, "extender --address 127.0.0.1:TAKEN", "already in use", "Choose another"),
    bad(1, "admission --address 127.0.0.1:TAKEN", "already in use", "Choose another"),
    bad(1, "admission --address 192.0.2.1:0", "Cannot listen on 192.0.2.1", "Choose another"),
    bad(1, "gpu list --kubeconfig wrong-token", "does not know you: Unauthorized", "sign in"),
    bad(1, "gpu list --kubeconfig no-ca", "no safe connection", "certificate-authority"),
    bad(1, "gpu list --kubeconfig other-name", "not valid for 'other.example'"),
    bad(1, "gpu list --kubeconfig plain-http", "without an answer", "https://?"),
    bad(1, "gpu list --kubeconfig other-path", "404 page not found", "Look at the server"),
)

# `explain -f` answers on stdout what `kubectl apply` would say, for each pod of the file.
REFUSED = (
    bad(1, "explain -f negative-pod.yaml", "gpu-mem]: wanted 0 or more, found -3"),
    bad(1, "explain -f half-pod.yaml", "gpu-mem]: wanted a whole number, found 1.5"),
    bad(1, "explain -f digits-pod.yaml", "default/a would be refused", "priority"),
    bad(1, "explain -f nan-pod.yaml", "default/a would be refused", "quantities must match"),
    bad(1, "explain -f word-pod.yaml", "default/a would be refused", "quantities must match"),
    bad(1, "explain -f unit-pod.yaml", "wanted a number of GiB, at most 15", "found 3Gi"),
    bad(1, "explain -f large-pod.yaml", "at most 15 as the largest shared card", "found 9999"),
    bad(1, "explain -f percent-pod.yaml", "wanted 1 to 100 percent of a card, found 150"),
    bad(1, "explain -f lonely-percent-pod.yaml", "wanted aliyun.com/gpu-mem beside it"),
    bad(1, "explain -f both-pod.yaml", "wanted whole cards (nvidia.com/gpu) or a share"),
    bad(1, "explain -f part-pod.yaml", "[nvidia.com/gpu]: wanted a whole number, found 0.5"),
    bad(1, "explain -f list-pod.yaml", "default/a would be refused", "spec.containers"),
    bad(1, "explain -f pod.yaml -n nope", 'namespaces "nope" not found'),
)

NODE_POOL = """
apiVersion: gpupool.io/v1alpha1
kind: NodePool
metadata: {name: p}
spec: {instanceType: ecs.g6.xlarge, count: 1%s}
"""
# Through kubectl: the manifest, and the words of the refusal or of the warning.
THROUGH_KUBECTL = (
    (
        NODE_POOL.replace("ecs.g6.xlarge", "nope") % "",
        'spec.instanceType: Unsupported value: "nope',
    ),
    (NODE_POOL.replace("count: 1", "count: -1") % "", "spec.count"),
    (NODE_POOL.replace("count: 1", "count: 1.5") % "", "spec.count"),
    (NODE_POOL.replace("count: 1", "count: two") % "", "spec.count"),
    (NODE_POOL % ", cuont: 3", 'unknown field "spec.cuont"'),
    (NODE_POOL % ", autoscaling: {min: 5, max: 2}", "autoscaling"),
    (NODE_POOL % ", labels: {'a b': c}", "labels"),
)
HINTS = (
    ("aliyun.com/gpumem: 3", "did you mean aliyun.com/gpu-mem?"),
    ("nvidia.com/gpus: 1", "did you mean nvidia.com/gpu?"),
    ("aliyun.com/gpu-count: 2", "write it as a label of the pod"),
)
