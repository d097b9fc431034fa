"""Chinese: draining and removing a node."""

WORDS = {
    "Drain": "排水",
    "Draining": "排水中",
    "Drained": "已排空",
    "Stopped": "已停止",
    "Not running": "未运行",
    "Progress of the drain": "排水进度",
    "Drain node {name}": "节点 {name} 排水",
    "Drain of node {name}": "节点 {name} 的排水",
    "The node gets no new pods. Pods to evict, as their disruption budgets allow: {go}. "
    "Pods that stay, because they belong to DaemonSets or to the node: {stay}. This goes on if "
    "you close the page, and stops when you sign out or the console ends; then the node stays "
    "unschedulable.": (
        "节点不再接受新的容器组。按中断预算（PDB）驱逐的容器组：{go}。"
        "属于守护进程集或节点自身而保留的容器组：{stay}。"
        "关闭页面后排水继续；退出登录或控制台停止时排水停止，节点保持不可调度。"
    ),
    "End pods that nobody makes again": "终止没有控制器、不会被重建的容器组",
    "Delete the data that pods have in an emptyDir": "删除容器组在 emptyDir 中的数据",
    "Wanted your consent, because of: {pods}": "需要您的确认，涉及：{pods}",
    "Node {name} is being drained.": "节点 {name} 正在排水。",
    "This node is being drained already.": "此节点已在排水中。",
    "Too many nodes are being drained. Wait for one of them.": (
        "正在排水的节点过多，请等待其中一个完成。"
    ),
    "Stop draining node {name}": "停止节点 {name} 的排水",
    "Pods that were evicted do not come back. The node stays unschedulable.": (
        "已驱逐的容器组不会回来。节点保持不可调度。"
    ),
    "Stop the drain": "停止排水",
    "You have stopped it.": "您已将其停止。",
    "The drain of node {name} has stopped.": "节点 {name} 的排水已停止。",
    "This console is not draining the node; it may have been started again since.": (
        "此控制台没有在为该节点排水；控制台可能已重新启动。"
    ),
    "{gone} of {all} pods have left the node.": "{all} 个容器组中有 {gone} 个已离开节点。",
    "The node is removed.": "节点已移除。",
    "It can be worked on, and takes no pods until it is schedulable.": (
        "可以维护此节点；设为可调度之前不接受容器组。"
    ),
    "You may close this page; it stops when you sign out or the console ends.": (
        "可以关闭此页面；退出登录或控制台停止时排水停止。"
    ),
    "Pods gone": "已离开的容器组",
    "Pods that are still there": "仍在节点上的容器组",
    "What holds it back": "受阻原因",
    "It is ending.": "正在终止。",
    "There is another node of this name now.": "现在有另一个同名节点。",
    "Somebody has set the node schedulable again.": "有人已将节点重新设为可调度。",
    "The visitor has signed out.": "访问者已退出登录。",
    "Remove node {name}": "移除节点 {name}",
    "The cluster forgets the node, and ends its pods.": "节点将从集群中移除，其容器组将终止。",
    "A machine whose kubelet still runs registers again.": "kubelet 仍在运行的机器会重新注册。",
    "Drain it first: its pods are evicted as their disruption budgets allow": (
        "先排水：按中断预算（PDB）驱逐其容器组"
    ),
    "Node pool {pool} is to have {count} nodes then; otherwise it makes a new one": (
        "节点池 {pool} 的期望节点数改为 {count}；否则节点池会创建新节点"
    ),
    "Node {name} is removed.": "节点 {name} 已移除。",
    "Node {name} is being drained, and is removed then.": "节点 {name} 正在排水，完成后移除。",
}
