"""Chinese: the GPU map."""

WORDS = {
    "GPU map": "GPU 地图",
    "{found} of {all} nodes have {wanted} GiB free on one card.": (
        "{all} 个节点中有 {found} 个在一张卡上有 {wanted} GiB 空闲显存。"
    ),
    "The most that is free on one card is {most} GiB.": "单卡最多空闲 {most} GiB 显存。",
    "GiB free on one card": "单卡空闲 GiB",
    "striped: reserved and not used": "条纹：已分配但未使用",
}
