"""Chinese: the GPU map."""

WORDS = {
    "Of so many nodes, what is used is the mean of the last minutes, from the history.": (
        "节点较多时，使用情况为历史数据中最近几分钟的平均值。"
    ),
    "GPU map": "GPU 地图",
    "{found} of {all} nodes have {wanted} GiB free on one card.": (
        "{all} 个节点中有 {found} 个在一张卡上有 {wanted} GiB 空闲显存。"
    ),
    "The most that is free on one card is {most} GiB.": "单卡最多空闲 {most} GiB 显存。",
    "The most that is free on one card is {most} GiB, and for a pod with a share {share} GiB.": (
        "单卡最多空闲 {most} GiB 显存，按份额申请的容器组最多可用 {share} GiB。"
    ),
    "{free} GiB free, as a whole card only": "空闲 {free} GiB，仅提供整卡",
    "GiB free on one card": "单卡空闲 GiB",
    'Wanted a number of GiB that is free on one card, such as 6, found "{text}".': (
        "请输入单卡空闲显存的 GiB 数，例如 6；现在输入的是“{text}”。"
    ),
    "filled: used; striped: reserved and not used": "实色：已使用；条纹：已分配但未使用",
    "used outside of Kubernetes": "被 Kubernetes 之外的进程使用",
    "foreign": "外部",
    "{mib} MiB are used outside of Kubernetes": "{mib} MiB 被 Kubernetes 之外的进程使用",
    "Outside of Kubernetes": "Kubernetes 之外",
    "no node pool": "无节点池",
    "detail": "详细",
    "heat": "热力图",
    "free": "空闲",
    "The heat view needs scripts.": "热力图需要启用脚本。",
    "Every card as a square. Arrow keys move, plus and minus zoom, 0 shows all, Enter opens the "
    "node.": ("每张 GPU 卡一个方块。方向键移动，加号和减号缩放，0 显示全部，回车打开节点。"),
    "Drag to move, wheel to zoom, click to open a node. A square is filled as far as its card is "
    "allocated.": ("拖动可移动，滚轮缩放，点击打开节点。方块填充的高度表示该卡已分配的比例。"),
    "Colour": "颜色",
    "colour: namespace": "颜色：命名空间",
    "colour: node pool": "颜色：节点池",
    "colour: use": "颜色：使用情况",
    "uses nothing": "未使用",
    "uses up to a quarter": "使用不超过四分之一",
    "up to a half": "不超过一半",
    "up to three quarters": "不超过四分之三",
    "up to all of its share": "不超过其份额",
    "more than its share": "超出其份额",
    "not known": "未知",
    "yes": "是",
    "no": "否",
    "all cards take pods": "所有卡可用",
    "some card is sick": "有异常的卡",
    "some card is cordoned": "有不可调度的卡",
    "… and {count} more": "…… 以及另外 {count} 个",
    "{used} / {all} GiB": "{used} / {all} GiB",
    "{used} GiB used": "已使用 {used} GiB",
    "takes no pods": "不接受容器组",
    "{units} of {all} GiB": "{all} GiB 中的 {units} GiB",
    "{used} of {share} MiB used": "{share} MiB 中已使用 {used} MiB",
    "since {time}": "自 {time}",
    "Card {card}": "GPU 卡 {card}",
    "Card {card} of {node}": "{node} 的 GPU 卡 {card}",
    "{card}: {memory} MiB": "{card}：{memory} MiB",
    "Close": "关闭",
    "On the map": "在地图上查看",
    "There is no such card (any more).": "没有这张 GPU 卡（或已不存在）。",
    "There is no such pod (any more).": "没有这个容器组（或已不存在）。",
    "{used} of {all} GiB are allocated.": "{all} GiB 中已分配 {used} GiB。",
    "One pod has all of it.": "一个容器组独占整卡。",
    "A new pod could get {free} GiB of it.": "新的容器组最多可得到 {free} GiB。",
    "It takes no new pods: {why}.": "不接受新的容器组：{why}。",
    "It takes no new pods: nobody knows how much a pod on it holds.": (
        "不接受新的容器组：无法得知卡上某个容器组占用多少。"
    ),
    "The agent of its node does not answer.": "其节点上的代理没有应答。",
    "UUID": "UUID",
    "Memory": "显存",
    "Cordon": "设为不可调度",
    "Uncordon": "恢复调度",
    "Cordon card": "将此卡设为不可调度",
    "Uncordon card": "恢复此卡调度",
    "Cordon card {card} of node {node}": "将节点 {node} 的 GPU 卡 {card} 设为不可调度",
    "Uncordon card {card} of node {node}": "恢复节点 {node} 的 GPU 卡 {card} 的调度",
    "It gets no new pods. Pods that are on it stay.": "不再接受新的容器组。卡上已有的容器组保留。",
    "It gets new pods again, and its errors so far are forgotten.": (
        "重新接受新的容器组，并清除此前的错误记录。"
    ),
    "Shown wherever the card is listed.": "在列出此卡的地方显示。",
    "Card {card} of node {node} is being cordoned.": (
        "正在将节点 {node} 的 GPU 卡 {card} 设为不可调度。"
    ),
    "Card {card} of node {node} is being uncordoned.": (
        "正在恢复节点 {node} 的 GPU 卡 {card} 的调度。"
    ),
}
