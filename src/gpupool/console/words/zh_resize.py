"""Chinese: resizing a share."""

WORDS = {
    "Resize": "调整份额",
    "Resize pod {name}": "调整容器组 {name} 的份额",
    "New share, in GiB": "新的显存份额（GiB）",
    "The new total of the container, over all its cards.": "该容器在其所有 GPU 卡上的新总量。",
    "It has no share of a card.": "它没有 GPU 卡的份额。",
    "It has whole cards. Only a share of a card can be resized.": (
        "它占用整卡。只有 GPU 卡的份额可以调整。"
    ),
    "It has {units} GiB. It keeps running, and never gets more than its card has left, nor less "
    "than it uses. A pod that replaces it has the share of its workload again.": (
        "它有 {units} GiB。调整时容器继续运行；份额不会超过卡上的剩余，也不会少于已使用量。"
        "重建的容器组恢复为工作负载中设置的份额。"
    ),
    "Its card has {free} GiB left.": "其 GPU 卡还剩 {free} GiB。",
    "Not resized: {why}.": "未调整：{why}。",
    "Pod {name} is resized: {words}.": "容器组 {name} 已调整：{words}。",
}
