"""What would help a pod, in the visitor's language."""

from gpupool.console.next_steps import step_words
from gpupool.console.words import CHINESE, ENGLISH, translator

SAID = (
    "Wait until a pod ends, delete one that holds a card (gpupool gpu pods lists them), "
    "or add a node.",
    "Request a share (aliyun.com/gpu-mem), "
    "or add a node that offers a whole card (nvidia.com/gpu).",
    "Request 2 or fewer cards, or add a node with 4.",
    "Something that nobody has translated.",
)


def test_english_stays_as_it_was_said() -> None:
    assert tuple(step_words(translator(ENGLISH), each) for each in SAID) == SAID


def test_chinese_keeps_names_and_numbers() -> None:
    first, mode, count, other = (step_words(translator(CHINESE), each) for each in SAID)
    assert first.startswith("等待某个容器组结束")
    assert (
        mode == "改为申请显存份额（aliyun.com/gpu-mem），或者添加提供整卡（nvidia.com/gpu）的节点。"
    )
    assert count == "最多申请 2 张 GPU 卡，或者添加有 4 张卡的节点。"
    assert other == SAID[-1]
