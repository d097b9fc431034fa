"""The files that the rows of bad input name."""

import base64

from tests.faults.bombs import MIB

HEAD = "apiVersion: gpupool.io/v1alpha1\nkind: Cluster\n"


def pools(fields: str, more: str = "") -> str:
    """A cluster file with one pool of these fields."""
    return f"{HEAD}{more}pools:\n  - {{name: a, {fields}}}\n"


def pod(limits: str = "", spec: str = "", metadata: str = "{name: a}") -> str:
    resources = f", resources: {{limits: {{{limits}}}}}" if limits else ""
    return (
        f"apiVersion: v1\nkind: Pod\nmetadata: {metadata}\n"
        f"spec: {{{spec}containers: [{{name: c, image: pause{resources}}}]}}\n"
    )


def kubeconfig(
    server: str = '"https://127.0.0.1:1"', cluster: str = "", user: str = "token: t"
) -> str:
    return (
        "apiVersion: v1\nkind: Config\n"
        f"clusters: [{{name: c, cluster: {{server: {server}{cluster}}}}}]\n"
        f"users: [{{name: u, user: {{{user}}}}}]\n"
        "contexts: [{name: x, context: {cluster: c, user: u}}]\n"
        "current-context: x\n"
    )


def in_base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def plugin(command: str) -> str:
    return (
        "exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, "
        f"command: {command}}}"
    )


# Ten lines that mean a billion values.
LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join(9 * ['*' + before])}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
TYPE = "instanceType: ecs.g6.xlarge"

CLUSTER_FILES: dict[str, str | bytes] = {
    "empty.yaml": "",
    "tabs.yaml": f"{HEAD}pools:\n\t- name: a\n",
    "binary.yaml": bytes(range(256)),
    "latin1.yaml": "name: café\n".encode("latin-1"),
    "utf16.yaml": HEAD.encode("utf-16"),
    "control.yaml": f"{HEAD}pools: \x01\n",
    "laughs.yaml": LAUGHS,
    "deep.yaml": "[" * 100_000,
    "huge.yaml": "# " + "x" * 2 * MIB,
    "itself.yaml": f"{HEAD}pools: &a [*a]\n",
    "alias.yaml": f"{HEAD}pools: *nothing\n",
    "merge.yaml": f"{HEAD}<<: 3\npools: []\n",
    "key.yaml": f"{HEAD}? [a]\n: b\npools: []\n",
    "tag.yaml": f"{HEAD}pools: !!python/object/apply:os.system ['true']\n",
    "twice.yaml": f"{HEAD}pools: []\npools: []\n",
    "two.yaml": f"{pools('count: 1, ' + TYPE)}---\n{HEAD}pools: []\n",
    "kind.yaml": "apiVersion: v1\nkind: Pod\npools: []\n",
    "version.yaml": "apiVersion: gpupool.io/v9\nkind: Cluster\npools: []\n",
    "list.yaml": "- a\n",
    "text.yaml": "hello\n",
    "null.yaml": f"{HEAD}pools: null\n",
    "field.yaml": pools(f"cuont: 1, {TYPE}"),
    "missing.yaml": pools("count: 1"),
    "name.yaml": f"{HEAD}name: My Cluster\npools: []\n",
    "number-name.yaml": f"{HEAD}pools:\n  - {{name: 5, count: 1, {TYPE}}}\n",
    "negative.yaml": pools(f"count: -1, {TYPE}"),
    "word.yaml": pools(f"count: two, {TYPE}"),
    "half.yaml": pools(f"count: 1.5, {TYPE}"),
    "nan.yaml": pools(f"count: .nan, {TYPE}"),
    "infinite.yaml": pools(f"count: -.inf, {TYPE}"),
    "1e400.yaml": pools(f"count: 1e400, {TYPE}"),
    "digits.yaml": pools(f"count: {'9' * 5000}, {TYPE}"),
    "quota.yaml": pools(f"count: 41, {TYPE}"),
    "type.yaml": pools("count: 1, instanceType: ecs.g6.xlage"),
    "card.yaml": pools(
        "count: 1, instanceType: t",
        "instanceTypes: [{name: t, vcpus: 4, memoryGiB: 16, gpus: {model: H1000, count: 2}}]\n",
    ),
    "unit.yaml": pools(
        "count: 1, instanceType: t", "instanceTypes: [{name: t, vcpus: 4, memoryGiB: 16GB}]\n"
    ),
    "same.yaml": f"{pools('count: 1, ' + TYPE)}  - {{name: a, count: 1, {TYPE}}}\n",
    "label.yaml": pools(f"count: 1, {TYPE}, labels: {{cgpu: true}}"),
    "label-key.yaml": pools(f"count: 1, {TYPE}, labels: {{'a b': c}}"),
    "node-name.yaml": pools(f"count: 1, {TYPE}, nodeNames: [A_B]"),
    "autoscaling.yaml": pools(f"count: 1, {TYPE}, autoscaling: {{min: 5, max: 2}}"),
    "network.yaml": pools(f"count: 1, {TYPE}", "network: {nodes: 192.168.1.0/99}\n"),
    "overlap.yaml": pools(f"count: 1, {TYPE}", "network: {nodes: 10.96.0.0/16}\n"),
}

MANIFESTS: dict[str, str | bytes] = {
    "pod.yaml": pod(),
    "service.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n",
    "no-containers.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n",
    "digits-pod.yaml": pod(spec=f"priority: {'9' * 40}, "),
    "metadata-pod.yaml": pod(metadata="3"),
    "negative-pod.yaml": pod("aliyun.com/gpu-mem: -3"),
    "half-pod.yaml": pod("aliyun.com/gpu-mem: 1.5"),
    "nan-pod.yaml": pod("aliyun.com/gpu-mem: .nan"),
    "unit-pod.yaml": pod("aliyun.com/gpu-mem: 3Gi"),
    "word-pod.yaml": pod("aliyun.com/gpu-mem: 3GiB"),
    "large-pod.yaml": pod("aliyun.com/gpu-mem: 9999"),
    "percent-pod.yaml": pod("aliyun.com/gpu-mem: 3, aliyun.com/gpu-core.percentage: 150"),
    "lonely-percent-pod.yaml": pod("aliyun.com/gpu-core.percentage: 50"),
    "both-pod.yaml": pod("aliyun.com/gpu-mem: 3, nvidia.com/gpu: 1"),
    "part-pod.yaml": pod("nvidia.com/gpu: 0.5"),
    "no-pods.yaml": (
        "kind: Deployment\nmetadata: {name: a}\n"
        "spec: {replicas: 0, template: {spec: {containers: [{name: c}]}}}\n"
    ),
    "list-pod.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: 3}\n",
}

KUBECONFIGS: dict[str, str | bytes] = {
    "unreachable": kubeconfig(),
    "text": "hello\n",
    "lists": "- a\n",
    "nothing": "",
    "tabs": "apiVersion: v1\n\tkind: Config\n",
    "binary": bytes(range(256)),
    "brace": "{",
    "laughs": LAUGHS,
    "deep": "[" * 100_000,
    "huge": "#" * 5 * MIB,
    "itself": "clusters: &a [*a]\n",
    "clusters-3": "clusters: 3\n",
    "context-list": kubeconfig().replace("{cluster: c, user: u}", "[a]"),
    "no-contexts": "apiVersion: v1\nkind: Config\nclusters: []\n",
    "no-current": kubeconfig().replace("current-context: x\n", ""),
    "other-cluster": kubeconfig().replace("cluster: c,", "cluster: d,"),
    "other-user": kubeconfig().replace("user: u}}]", "user: v}}]"),
    "server-number": kubeconfig("5"),
    "server-empty": kubeconfig('""'),
    "server-ftp": kubeconfig('"ftp://127.0.0.1:1"'),
    "server-bare": kubeconfig('"127.0.0.1:1"'),
    "server-port": kubeconfig('"https://127.0.0.1:99999"'),
    "server-unknown": kubeconfig('"https://no-such-host.invalid:6443"'),
    "ca-base64": kubeconfig(cluster=", certificate-authority-data: '###'"),
    "ca-no-pem": kubeconfig(cluster=f", certificate-authority-data: {in_base64('hello')}"),
    "ca-no-file": kubeconfig(cluster=", certificate-authority: nowhere.crt"),
    "client-no-file": kubeconfig(user="client-certificate: nowhere.crt, client-key: nowhere.key"),
    "token-lines": kubeconfig(user='token: "a\\nb"'),
    "token-no-file": kubeconfig(user="tokenFile: nowhere"),
    "plugin-unknown": kubeconfig(user=plugin("no-such-program")),
    "plugin-fails": kubeconfig(user=plugin("'false'")),
    "proxy": kubeconfig('"https://10.255.255.1"', ", proxy-url: 'http://127.0.0.1:1'"),
}

TRACES: dict[str, str | bytes] = {
    "pods.csv": "name,cpu,memory,gpu\na,1,1Gi,1\n",
    "nodes.csv": "name,cpu,memory,gpu,model\nn,8,64Gi,1,V100\n",
    "empty.csv": "",
    "header.csv": "name,cpu,memory,gpu\n",
    "columns.csv": "a,b\n1,2\n",
    "short.csv": "name,cpu,memory,gpu\na,1\n",
    "column-twice.csv": "name,name\n",
    "pod-twice.csv": "name,cpu,memory,gpu\na,1,1Gi,1\na,1,1Gi,1\n",
    "no-name.csv": "name,cpu,memory,gpu\n,1,1Gi,1\n",
    "negative.csv": "name,cpu,memory,gpu\na,-1,1Gi,1\n",
    "nan.csv": "name,cpu,memory,gpu\na,1,1Gi,nan\n",
    "1e400.csv": "name,cpu,memory,gpu\na,1,1Gi,1e400\n",
    "unit.csv": "name,cpu,memory,gpu\na,1,1GB,1\n",
    "half.csv": "name,cpu,memory,gpu\na,1,1Gi,1.5\n",
    "no-gpu.csv": "name,cpu,memory,gpu\na,1,1Gi,0\n",
    "model.csv": "name,cpu,memory,gpu,models\na,1,1Gi,1,H100\n",
    "many-cards.csv": "name,cpu,memory,gpu\nn,8,64Gi,1000\n",
    "brace.json": "{",
    "no-list.json": '{"pods": 3}',
    "numbers.json": "[1]",
    "deep.json": "[" * 100_000,
    "digits.json": f"[{'9' * 5000}]",
    "no-metadata.json": '{"kind": "List", "items": [{"kind": "Node"}]}',
    "numbers-list.json": '{"kind": "List", "items": [3]}',
    "no-items.json": '{"kind": "List", "items": []}',
    "unknown-pod.txt": "zz\n",
    "binary.csv": bytes(range(256)),
}

OTHERS: dict[str, str | bytes] = {
    "file": "hello\n",
    "policy.toml": "[[[",
    "effect.toml": "[xid.79]\neffect = 'explode'\n",
    "table.toml": "[xid]\n79 = 'unhealthy'\n",
    "number.toml": "[xid.x]\neffect = 'ignore'\n",
}
