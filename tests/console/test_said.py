"""What scheduler and agents say, in the visitor's language."""

import re
import tomllib
from collections.abc import Iterator
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpupool.console.parts.cells import Text
from gpupool.console.said import reason_cell, said, said_cell, shortly
from gpupool.console.words import CHINESE, ENGLISH, translator
from gpupool.core.gpu import Allocation, CardShare, ContainerGpus, Isolation
from gpupool.core.nodes import NodeInfo
from gpupool.core.pods import PodRequest
from gpupool.engine.card_words import card_summary
from gpupool.engine.decide import Placement, decide
from gpupool.engine.explain import explain
from gpupool.local.config.quotas import Exceeded
from gpupool.scheduler.kept_words import words_of
from gpupool.scheduler.next_step import next_step
from tests.engine.building import POLICY, cluster_of
from tests.engine.samples import nodes, pods

SAID = (
    "Wait until a pod ends, delete one that holds a card (gpupool gpu pods lists them), "
    "or add a node.",
    "Request a share (aliyun.com/gpu-mem), "
    "or add a node that offers a whole card (nvidia.com/gpu).",
    "Request 2 or fewer cards, or add a node with 4.",
    "Something that nobody has translated.",
    "0/4 nodes are available: 1 Insufficient cpu, 3 node(s) were unschedulable. preemption: "
    "0/4 nodes are available: 4 Preemption is not helpful for scheduling. "
    "GPUs: none of 8 has 6 units free, the best has 4.",
    "card 0: 1 of 15 units free, 7 wanted; a/b, c/d (kept for it) and 2 more hold some of it; "
    "9000 MiB held by processes outside Kubernetes",
)
CHINESE_WORDS = translator(CHINESE)
# Names in the texts of the engine: of pods, resources, models, cards, labels, taints and classes.
NAMES = re.compile(
    r"\w+ (?:Gt|Lt|In|NotIn) \[[^]]*\]|\w+ (?:Exists|DoesNotExist)|!?\w+ (?:in|notin) \([^)]*\)"
    r"|!?\b(?:app|team|default|other)\b(?:!?=\w*)?"
    r"|[\w*./-]*[\d./*][\w*./-]*|\{\w+: \w*\}|GPU|GiB|MiB|UUID|Kubernetes|nodeSelector"
    r"|kubectl label node NODE \S+|runtimeClassName|nvidia|zone|disk|size|cpu|memory|pods"
    r"|[a-z]+: \"\w*\"|gpupool gpu (list|pods)|XID|MIG|NVIDIA|NVLink|persistentvolumeclaim"
)


def english_left(text: str) -> list[str]:
    return re.findall(r"[A-Za-z]{2,}", NAMES.sub(" ", text))


def test_a_quota_that_is_used_up_is_said_in_chinese() -> None:
    words = "quota load-balancers is 60: 60 used, 61 wanted. Raise it with: gpupool quota set x=61"
    assert said(translator(ENGLISH), words) == words
    assert said(CHINESE_WORDS, words) == (
        "配额 load-balancers 为 60，已用 60，需要 61。提高配额：gpupool quota set x=61"
    )


def test_every_quota_that_is_used_up_is_said_in_chinese() -> None:
    limits = (("nodes-per-cluster", 40), ("routes-per-cluster", 48), ("eips", 20))
    words = "; ".join(str(Exceeded(name, limit, 8, 67)) for name, limit in limits)
    assert said(translator(ENGLISH), words) == words
    assert said(CHINESE_WORDS, words) == "；".join(
        f"配额 {name} 为 {limit}，已用 8，需要 67。提高配额：gpupool quota set {name}=67"
        for name, limit in limits
    )


def test_why_a_share_is_not_made_smaller_is_said_in_chinese() -> None:
    words = (
        "container main uses 3226 MiB of card 0, more than the 1075 MiB of its new share (if its "
        "programs have ended by now, run nvidia-smi in it, and try again)"
    )
    assert said(CHINESE_WORDS, words) == (
        "容器 main 在 GPU 卡 0 上使用了 3226 MiB，超过新份额的 1075 MiB"
        "（如果其程序已经结束，请在容器中运行 nvidia-smi 后重试）"
    )


@pytest.mark.parametrize(
    ("within_s", "chinese"), [(50, "50 秒"), (600, "10 分钟"), (86_400, "24 小时")]
)
def test_room_that_is_kept_is_said_in_chinese(within_s: float, chinese: str) -> None:
    node, shares = "gpu-1", tuple(CardShare(f"GPU-{at}", at, 15, 16130, 15) for at in (0, 3))
    place = Placement(node, Allocation((ContainerGpus("main", shares, Isolation.NONE),)))
    since = "2026-11-18T07:54:43Z"
    words = words_of(place, since, within_s)
    kept = f"已为其保留：gpu-1 的 GPU 卡 0, 3（自 {since} 起），预计此后 {chinese}内可用。"
    assert said(CHINESE_WORDS, words) == kept
    message = SAID[4].partition(" preemption: ")[0]
    lacks = f"{message} GPUs: none of 8 has 6 units free, the best has 4."
    assert said(CHINESE_WORDS, f"{lacks} {words}") == said(CHINESE_WORDS, lacks) + kept
    assert shortly(CHINESE_WORDS, f"{lacks} {words}") == shortly(CHINESE_WORDS, lacks)
    english = translator(ENGLISH)
    assert said(english, f"{lacks} {words}") == f"{said(english, lacks)} {words}"


def test_english_stays_as_it_was_said_but_for_units() -> None:
    *same, message, card = (said(translator(ENGLISH), each) for each in SAID)
    assert tuple(same) == SAID[:4]
    assert message.endswith("None of 8 cards has 6 GiB free, the best has 4 GiB.")
    assert card == SAID[5].replace("15 units free, 7 wanted", "15 GiB free, 7 GiB wanted")


def test_a_list_has_room_for_what_is_missing_only() -> None:
    english = translator(ENGLISH)
    assert shortly(english, SAID[4]) == "None of 8 cards has 6 GiB free, the best has 4 GiB."
    without_cards = SAID[4].partition(" GPUs: ")[0]
    assert shortly(english, without_cards) == without_cards.partition(" preemption: ")[0]
    assert shortly(english, "") == ""


def test_chinese_keeps_names_and_numbers() -> None:
    first, mode, count, other, message, card = (said(CHINESE_WORDS, each) for each in SAID)
    assert first.startswith("等待某个容器组结束")
    assert (
        mode == "改为申请显存份额（aliyun.com/gpu-mem），或者添加提供整卡（nvidia.com/gpu）的节点。"
    )
    assert count == "最多申请 2 张 GPU 卡，或者添加有 4 张卡的节点。"
    assert other == SAID[3]
    assert message == (
        "4 个节点均不可用：cpu 不足（1 个节点），节点不可调度（3 个节点）。"
        "抢占：4 个节点均不可用：抢占无助于调度（4 个节点）。"
        "GPU 卡：8 张卡中没有一张空闲 6 GiB，最多空闲 4 GiB。"
    )
    assert card == (
        "GPU 卡 0：15 GiB 中空闲 1 GiB，需要 7 GiB；a/b，c/d（为其保留） 以及另外 2 个 "
        "占用其中一部分；9000 MiB 被 Kubernetes 之外的进程占用"
    )


@pytest.mark.parametrize("what", ["Memory", "compute"])
def test_shares_of_several_cards_are_said_in_chinese(what: str) -> None:
    words = said(CHINESE_WORDS, f"0/4 nodes are available: 4 Insufficient GPU {what} in 2 devices.")
    assert not english_left(words), words
    assert "不足 2 张" in words


def test_what_a_person_wrote_stays_as_it_is() -> None:
    for reason in ("fan and pump are loud", "model is old", "3 of them or 4 more", "no uuid known"):
        assert said(CHINESE_WORDS, reason) == reason
    assert said(CHINESE_WORDS, "cordoned (fan and pump)") == "不可调度（fan and pump）"


def test_a_long_text_is_not_read() -> None:
    long = "XID 79: " + "the card; " * 1_000
    assert said(CHINESE_WORDS, long) == long


def test_every_xid_of_the_list_has_words() -> None:
    text = resources.files("gpupool.agent").joinpath("xids.toml").read_text(encoding="utf-8")
    rules = tomllib.loads(text)
    meanings = [rule["meaning"] for rule in (rules["default"], *rules["xid"].values())]
    assert len(meanings) > 20
    for meaning in meanings:
        assert not english_left(said(CHINESE_WORDS, f"XID 7: {meaning}")), meaning


def texts_about(found: list[NodeInfo], others: list[PodRequest], pod: PodRequest) -> Iterator[str]:
    """All that the engine says about a pod on these nodes, where others came before."""
    cluster = cluster_of(*found)
    for other in others:
        if isinstance(decision := decide(cluster, other, POLICY), Placement):
            cluster.hold(other, decision.node, decision.allocation)
    explained = explain(cluster, pod)
    yield explained.message
    yield card_summary(cluster, pod)
    yield next_step(cluster, pod)
    for node in explained.nodes:
        yield from (*node.reasons, *node.cards)


@given(
    st.lists(nodes(), max_size=4, unique_by=lambda n: n.name), st.lists(pods(), max_size=4), pods()
)
def test_whatever_the_engine_says_of_a_waiting_pod_has_words(
    found: list[NodeInfo], others: list[PodRequest], pod: PodRequest
) -> None:
    if pod.unsupported or pod.waits_for:
        return  # what others say of claims and fields
    for text in texts_about(found, others, pod):
        words = said(CHINESE_WORDS, text)
        assert not english_left(words), f"{text!r} became {words!r}"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Successfully assigned a/b-0 to n1", "已将 a/b-0 调度到 n1"),
        ("Scaled up replica set web-5f from 1 to 3", "副本集 web-5f 已从 1 扩容到 3"),
        (
            'nodepools.gpupool.io "w" is forbidden: quota nodes-per-cluster is 40: 38 used, 44 '
            "wanted. Raise it with: gpupool quota set nodes-per-cluster=44",
            "44",
        ),
        (
            'pods "p" is forbidden: exceeded quota: small, requested: pods=1, used: pods=5, '
            "limited: pods=5",
            'pods "p" 被拒绝：超过配额 small：请求 pods=1，已使用 pods=5，上限 pods=5',
        ),
        (
            'admission webhook "pods.gpupool.io" denied the request: '
            "spec.containers[0].resources.limits[nvidia.com/gpu]: wanted 0 or more, found -1; "
            "spec.nodeName: wanted none (the scheduler also chooses the card; use nodeSelector or "
            "affinity), found n1",
            "亲和性",
        ),
    ],
)
def test_events_and_refusals_that_are_well_known_are_said_in_chinese(text: str, words: str) -> None:
    cell = said_cell(CHINESE_WORDS, text)
    assert words in cell.text
    assert cell.original == text, "the original stays to be seen"
    assert said_cell(translator(ENGLISH), text).text == text


def test_a_reason_keeps_its_name_beside_the_words() -> None:
    assert reason_cell(CHINESE_WORDS, "FailedScheduling") == Text(
        "调度失败", original="FailedScheduling"
    )
    assert reason_cell(CHINESE_WORDS, "MadeUpByOthers") == Text("MadeUpByOthers")
    assert reason_cell(translator(ENGLISH), "FailedScheduling") == Text("FailedScheduling")
