"""Chinese: pods, and why they wait."""

WORDS = {
    "{all} pods, {gpus} of them hold cards.": "{all} 个容器组，其中 {gpus} 个占用 GPU 卡。",
    "Restarts": "重启次数",
    "There are no pods here.": "这里没有容器组。",
    "Running": "运行中",
    "card {card}: {memory} MiB, {isolation}": "GPU 卡 {card}：{memory} MiB，{isolation}",
    "wants {asks}": "申请：{asks}",
    "1 whole card": "1 张整卡",
    "{count} whole cards": "{count} 张整卡",
    "{units} GiB of a card": "一张卡的 {units} GiB 显存",
    "{units} GiB on each of {cards} cards": "{cards} 张卡，每张 {units} GiB 显存",
    "{memory} and {percent} % of its compute": "{memory}和 {percent}% 算力",
    'pod "{name}" in namespace "{namespace}"': "命名空间“{namespace}”中的容器组“{name}”",
    "Waits for {asks}.": "正在等待{asks}。",
    "Waits for a node.": "正在等待节点。",
    "On node {node}. It holds no card.": "位于节点 {node}，不占用 GPU 卡。",
    "On node {node}, {held}.": "位于节点 {node}，{held}。",
    "Delete pod {name}": "删除容器组 {name}",
    "Its containers end. If it belongs to a workload, a new pod takes its place.": (
        "其中的容器将结束。如果它属于某个工作负载，会有新的容器组取代它。"
    ),
    "Pod {name} is being deleted.": "正在删除容器组 {name}。",
    "Container": "容器",
    "Share": "显存份额",
    "Isolation": "显存隔离",
    "It asks for no card.": "没有申请 GPU 卡。",
    "Where": "位置",
    "Belongs to": "所属工作负载",
    "Image": "镜像",
    "Why it waits": "等待原因",
    "What would help:": "解决办法：",
    "Wait until a pod ends, delete one that holds a card (gpupool gpu pods lists them), "
    "or add a node.": (
        "等待某个容器组结束，或者删除一个占用 GPU 卡的容器组（用 gpupool gpu pods 查看），"
        "或者添加节点。"
    ),
    "See why cards are out of use (gpupool gpu list), or add a node.": (
        "查看 GPU 卡不可用的原因（gpupool gpu list），或者添加节点。"
    ),
    "Request {other}, or add a node that offers {wanted}.": (
        "改为申请{other}，或者添加提供{wanted}的节点。"
    ),
    "Request {most} or fewer cards, or add a node with {count}.": (
        "最多申请 {most} 张 GPU 卡，或者添加有 {count} 张卡的节点。"
    ),
    "Request {most} or fewer units, or add a node with larger cards.": (
        "最多申请 {most} GiB 显存，或者添加显存更大的节点。"
    ),
    "a share (aliyun.com/gpu-mem)": "显存份额（aliyun.com/gpu-mem）",
    "a whole card (nvidia.com/gpu)": "整卡（nvidia.com/gpu）",
    "Why not on this node": "不满足的条件",
    "it would fit": "可以容纳",
    "… and {count} more nodes.": "……以及另外 {count} 个节点。",
    "To see why, node by node, you need the right to see all nodes and pods.": (
        "要逐个节点查看原因，需要查看全部节点和容器组的权限。"
    ),
    "Pod": "容器组",
    "Asks for": "申请",
    "Because": "原因",
    "No pod waits.": "没有容器组在等待。",
    "No pod waits. All that was submitted has a node.": "没有容器组在等待，所有容器组都已调度。",
}
