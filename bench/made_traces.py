"""Further traces, made from openb's by chance: other bound pods, more large ones, no whole cards.

A policy that was tuned on four traces is judged on these too. They are the same every time.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random

from gpupool.contract.names import LABEL_NVIDIA_NAME
from gpupool.replay.trace import MILLI, Trace, TracePod, bound_to

Change = Callable[[TracePod, Random], list[TracePod]]

_MOST_MODELS = 3  # that a bound pod accepts


def made_from(openb: dict[str, Trace]) -> Iterator[Trace]:
    """`openb`: by the names of `packing.WORKLOADS`."""
    default, spec, shares = (openb[name] for name in ("default", "gpuspec33", "gpushare40"))
    yield _made("spec20", spec, lambda pod, draw: [_freed(pod) if draw.random() < 0.4 else pod])
    yield _made("other20", default, _binding(default, 0.2, evenly=True))
    yield _made("half", default, _binding(default, 0.5))
    yield _made("big", spec, lambda pod, _: [pod] * (4 if pod.cards > 1 else 1))
    tenth = _binding(shares, 0.1)
    yield _made(
        "bigshare", shares, lambda pod, draw: tenth(pod, draw) * (6 if pod.cards > 7 else 1)
    )
    # Beside shares and pods of several cards. Pods without GPUs then use up the CPU of machines.
    yield _made("shares", shares, lambda pod, _: [] if pod.gpu_milli == MILLI else [pod])


def _made(name: str, trace: Trace, change: Change) -> Trace:
    draw = Random(name)
    return replace(trace, name=name, pods=tuple(p for pod in trace.pods for p in change(pod, draw)))


def _freed(pod: TracePod) -> TracePod:
    return replace(pod, request=replace(pod.request, node_terms=None))


def _binding(trace: Trace, part: float, *, evenly: bool = False) -> Change:
    """Bind this part of the pods, each to one to three models, by their cards or `evenly`."""
    cards: Counter[str] = Counter()
    most: Counter[str] = Counter()  # cards of a node
    for node in trace.nodes:
        if node.inventory is not None:
            model, count = node.labels[LABEL_NVIDIA_NAME], len(node.inventory.cards)
            cards[model] += count
            most[model] = max(most[model], count)

    def bind(pod: TracePod, draw: Random) -> list[TracePod]:
        # No model that has no node large enough: such a pod never fits.
        able = sorted(model for model in cards if most[model] >= pod.cards)
        if not pod.cards or draw.random() >= part:
            return [pod]
        weights = [1 if evenly else cards[model] for model in able]
        chosen = {draw.choices(able, weights)[0] for _ in range(draw.randint(1, _MOST_MODELS))}
        terms = bound_to(tuple(sorted(chosen)))
        return [replace(pod, request=replace(pod.request, node_terms=terms))]

    return bind
