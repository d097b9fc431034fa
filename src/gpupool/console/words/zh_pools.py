"""Chinese: node pools."""

WORDS = {
    "Node pools": "节点池",
    "Initializing": "初始化中",
    "Active": "已激活",
    "Failed": "失败",
    "{active} of {all} node pools are active.": "{all} 个节点池中有 {active} 个已激活。",
    "Create node pool": "创建节点池",
    "This cluster has no NodePool objects: pools are a label of nodes, and are only shown.": (
        "此集群没有 NodePool 对象：节点池只是节点的标签，仅供查看。"
    ),
    "Scale out": "扩容",
    "Nodes (ready/wanted)": "节点数（就绪/期望）",
    "There are no node pools.": "没有节点池。",
    "auto scaling {range}": "自动伸缩 {range}",
    "managed": "托管",
    "custom": "自定义",
    "Node pool name": "节点池名称",
    "From 0 to {most}. It can be changed later.": "0 到 {most}，以后可以修改。",
    "Node labels": "节点标签",
    "One per line: key=value": "每行一个：key=value",
    "ECS tags": "ECS 标签",
    "Resource group": "资源组",
    "One per line: key=value. With cgpu=true, pods share the cards of the nodes.": (
        "每行一个：key=value。设置 cgpu=true 后，容器组共享节点的 GPU 卡。"
    ),
    "One per line: key=value:NoSchedule": "每行一个：key=value:NoSchedule",
    "Wanted small letters, digits and hyphens.": "只能使用小写字母、数字和连字符。",
    "Node pool {name} is being created.": "正在创建节点池 {name}。",
    "Scale out node pool {name}": "扩容节点池 {name}",
    "Nodes wanted": "期望节点数",
    "Node pool {name} is to have {count} nodes.": "节点池 {name} 将有 {count} 个节点。",
    "Delete node pool {name}": "删除节点池 {name}",
    "Its nodes are drained and removed.": "其节点将被排空并移除。",
    "Node pool {name} is being deleted.": "正在删除节点池 {name}。",
    'node pool "{name}"': "节点池“{name}”",
    "Create managed node pool": "创建托管节点池",
    "Configure auto scaling": "自动弹性伸缩配置",
    "Edit": "编辑",
    "Save": "保存",
    "Edit node pool {name}": "编辑节点池 {name}",
    "What you change holds for nodes that are made from now on.": "更改对以后创建的节点生效。",
    "Also set labels and taints of the nodes that are there": "同步更新现有节点的标签和污点",
    "Node pool {name} is changed.": "节点池 {name} 已更改。",
    "Nodes changed: {count}.": "已更改的节点：{count}。",
    "Wanted at most {most} nodes, found {count}.": "最多 {most} 个节点，实际为 {count}。",
    "Managed: the platform repairs and upgrades its nodes": "托管：由平台修复和升级节点",
    "Auto scaling": "自动伸缩",
    "Auto scaling: fewest nodes": "自动伸缩：最小节点数",
    "Auto scaling: most nodes": "自动伸缩：最大节点数",
    "Both numbers: the pool grows when pods wait. None: its size is fixed.": (
        "填写两个数值：有容器组等待时节点池扩容。不填写：节点数固定。"
    ),
    "Wanted both numbers, or none.": "请同时填写两个数值，或都不填写。",
    "Wanted at least {least}, found {most}.": "至少应为 {least}，实际为 {most}。",
    "Wanted {least} to {most}, as auto scaling allows; found {count}.": (
        "应在自动伸缩允许的 {least} 到 {most} 之间，实际为 {count}。"
    ),
    "It is being deleted: its nodes are drained and removed.": "正在删除：其节点将被排空并移除。",
    "{vcpus} vCPU, {memory} GiB": "{vcpus} vCPU，{memory} GiB",
    "{size}, {cards}": "{size}，{cards}",
    "no cards": "无 GPU 卡",
    "line {number}: wanted {wanted}, found: {found}": (
        "第 {number} 行：应为 {wanted}，实际为：{found}"
    ),
}
