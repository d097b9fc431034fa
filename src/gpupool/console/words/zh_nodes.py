"""Chinese: nodes."""

WORDS = {
    "{ready} of {all} nodes are ready.": "{all} 个节点中有 {ready} 个就绪。",
    "Unschedulable: {count}.": "不可调度：{count}。",
    "Role": "角色",
    "worker": "工作节点",
    "Instance type": "实例规格",
    "Version": "版本",
    "Model": "型号",
    "The cluster has no nodes.": "集群没有节点。",
    "Not ready": "未就绪",
    "Unschedulable": "不可调度",
    "Ready": "就绪",
    'node "{name}"': "节点“{name}”",
    "Not ready: {why}": "未就绪：{why}",
    "its kubelet has not reported": "kubelet 没有上报状态",
    "Ready. It has no cards.": "就绪。没有 GPU 卡。",
    "Ready.": "就绪。",
    "{cards} × {model}; {free} of {units} GiB are free.": (
        "{cards} × {model}；空闲显存 {free} / {units} GiB。"
    ),
    "It gets no new pods.": "不再接受新的容器组。",
    "Operating system": "操作系统",
    "Taints": "污点",
    "None: every pod may come.": "无：任何容器组都可以调度到此节点。",
    "Capacity": "容量",
    "Resource": "资源",
    "For pods": "可分配",
    "Conditions": "状况",
    "Condition": "状况",
    "Set schedulable": "设为可调度",
    "Set unschedulable": "设为不可调度",
    "Set node {name} unschedulable": "将节点 {name} 设为不可调度",
    "Set node {name} schedulable": "将节点 {name} 设为可调度",
    "It gets no new pods. Pods that run on it stay.": (
        "不再接受新的容器组，已运行的容器组不受影响。"
    ),
    "It gets new pods again.": "重新接受新的容器组。",
    "Node {name} gets no new pods.": "节点 {name} 不再接受新的容器组。",
    "Node {name} gets new pods again.": "节点 {name} 重新接受新的容器组。",
    "Labels of node {name}": "节点 {name} 的标签",
    "One label in a line, as key=value. A line that you remove removes its label.": (
        "每行一个标签，格式为 key=value。删除一行即删除该标签。"
    ),
    "Save labels": "保存标签",
    "{count} labels changed.": "已更改 {count} 个标签。",
    "line {number}: wanted key=value, found: {text}": (
        "第 {number} 行：应为 key=value，实际为：{text}"
    ),
}
