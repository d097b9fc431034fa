"""Chinese: the overview."""

WORDS = {
    "All {count} waiting pods": "全部 {count} 个等待中的容器组",
    "No node has GPUs. A node has them once its agent has found a driver.": (
        "没有节点带有 GPU。节点上的代理发现驱动之后，节点才带有 GPU。"
    ),
    "{free} of {all} cards are free; {used} of {units} GiB are allocated.": (
        "{all} 张 GPU 卡中有 {free} 张空闲；显存已分配 {used} / {units} GiB。"
    ),
    "Nodes that are not ready: {count}.": "未就绪的节点：{count}。",
    "Cards that take no pods: {count}.": "不接受容器组的 GPU 卡：{count}。",
    "Waiting pods: {count}.": "等待中的容器组：{count}。",
    "all healthy": "全部健康",
    "{count} take no pods": "{count} 张不接受容器组",
    "Free cards": "空闲 GPU 卡",
    "no pod is on them": "没有容器组占用",
    "not all agents answer": "部分代理没有应答",
    "by programs, now": "程序当前使用",
    "{count} unschedulable": "{count} 个不可调度",
    "ready": "就绪",
    "{count} fail": "{count} 个异常",
    "running": "运行中",
    "see why": "查看原因",
    "nobody": "无",
    "Who waits, and why": "谁在等待，以及原因",
    "The scheduler has not said anything about it yet.": "调度器尚未说明原因。",
    "All {count} nodes with cards": "全部 {count} 个 GPU 节点",
    "Warnings": "告警",
}
