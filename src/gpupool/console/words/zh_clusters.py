"""Chinese: clusters."""

WORDS = {
    "Existing instances": "已有实例",
    "New instances": "新增实例",
    "Instances": "实例",
    "How many": "数量",
    "Existing instances, all of one type": "已有实例（规格须相同）",
    "No instance is free. Add some: gpupool machines add TYPE": (
        "没有空闲的实例。添加实例：gpupool machines add TYPE"
    ),
    "Choose at least one instance.": "请至少选择一个实例。",
    "One of them is not free any more.": "其中有实例已不再空闲。",
    "Wanted instances of one type, found: {types}": "实例规格须相同，实际为：{types}",
    "Another pool has these already: {names}": "另一个节点池已选择：{names}",
    "Add instances": "添加实例",
    "{free} of {all} instances are free.": "{all} 个实例中有 {free} 个空闲。",
    "In use": "使用中",
    "Free": "空闲",
    "There are no instances. Clusters get new ones.": "没有已有实例。集群将新增实例。",
    "It is a node of cluster {name}.": "它是集群 {name} 的节点。",
    "They belong to no cluster until a node pool is made of them.": (
        "加入节点池之前，它们不属于任何集群。"
    ),
    "Names": "名称列表",
    "One per line, in place of a number. Nodes get these names.": (
        "每行一个名称，代替数量。节点将使用这些名称。"
    ),
    "Instances added: {count}.": "已添加 {count} 个实例。",
    'instance "{name}"': "实例“{name}”",
    "Remove instance {name}": "移除实例 {name}",
    "Instance {name} is removed.": "实例 {name} 已移除。",
    "Clusters": "集群",
    "All clusters": "所有集群",
    "Create cluster": "创建集群",
    "{running} of {all} clusters run.": "{all} 个集群中有 {running} 个正在运行。",
    "No clusters can be made on this machine.": "此机器上不能创建集群。",
    "Clusters: this console serves others, and shows one cluster.": (
        "集群：此控制台为他人服务，只显示一个集群。"
    ),
    "Starting": "启动中",
    "Stopping": "停止中",
    "Creating": "创建中",
    "Deleting": "删除中",
    "{what}: failed": "{what}：失败",
    "Not asked yet": "尚未访问",
    "Does not answer": "没有响应",
    "There are no clusters.": "没有集群。",
    "on this machine": "在此机器上",
    "context of the kubeconfig": "kubeconfig 的上下文",
    "Start": "启动",
    "Stop": "停止",
    "Forget": "忽略",
    'cluster "{name}"': "集群“{name}”",
    "Cluster name": "集群名称",
    "Region": "地域",
    "Master nodes": "Master 节点数",
    "May be 0. Pods do not go to them.": "可以为 0。容器组不会调度到这些节点。",
    "Worker pool {number}": "Worker 节点池 {number}",
    "Leave it empty if you need no such pool.": "留空：不创建此节点池。",
    "Wanted small letters, digits and hyphens, at most 40.": (
        "只能使用小写字母、数字和连字符，最多 40 个字符。"
    ),
    "There is another pool of this name.": "已有同名节点池。",
    "There is another cluster of this name.": "已有同名集群。",
    "Quota {name} is {limit}, wanted {wanted}. Raise it with: gpupool quota set {name}={wanted}": (
        "配额 {name} 为 {limit}，需要 {wanted}。提高配额：gpupool quota set {name}={wanted}"
    ),
    "It runs on this machine. Clusters: {used} of {clusters}; nodes in a cluster: at most "
    "{nodes}.": "集群运行在此机器上。集群：{used} / {clusters}；每个集群最多 {nodes} 个节点。",
    "Security groups: {used} of {limit}": "安全组：{used} / {limit}",
    "Load balancers: {used} of {limit}": "负载均衡：{used} / {limit}",
    "EIPs: {used} of {limit}": "EIP：{used} / {limit}",
    "Nodes: {sum} of {limit}": "节点：{sum} / {limit}",
    "Nodes: {sum}, and the quota allows {limit}. Raise it with: gpupool quota set {quotas}": (
        "节点：{sum}，配额为 {limit}。提高配额：gpupool quota set {quotas}"
    ),
    "Cluster {name} is being created.": "正在创建集群 {name}。",
    "Start cluster {name}": "启动集群 {name}",
    "It comes back with all its objects.": "集群将恢复其所有对象。",
    "Stop cluster {name}": "停止集群 {name}",
    "Its pods stop too. Its data stays, for the next start.": (
        "其容器组也会停止。数据保留，供下次启动使用。"
    ),
    "Delete cluster {name}": "删除集群 {name}",
    "It stops, and all its data is deleted: objects, keys, kubeconfig, log.": (
        "集群将停止，其所有数据将被删除：对象、密钥、kubeconfig、日志。"
    ),
    "Another command works on this cluster.": "另一个命令正在操作此集群。",
    "Cluster {name} is being started.": "正在启动集群 {name}。",
    "Cluster {name} is being stopped.": "正在停止集群 {name}。",
    "Cluster {name} is being deleted.": "正在删除集群 {name}。",
    "Forget cluster {name}": "忽略集群 {name}",
    "Cluster {name} is forgotten.": "已忽略集群 {name}。",
}
