"""Which objects select a pod, and which pods an object selects.

Users write selectors and pods, as many and as large as they like. Nothing here reads all of them at
once: what selects is kept compiled, and pods are read in turns with everybody else.
"""

from collections.abc import Callable, Iterable

from kubeclient.mirror import Key, Mirror, key_of
from kubeclient.objects import Obj
from kubeclient.resources import PODS
from kubeclient.selectors import NOTHING, LabelSelector, SelectorError, from_object
from kubeclient.turns import Turns
from localkube.controllers.run import Context

_BY_NAMESPACE = "namespace"
_LARGE = 32  # keys and values


def compiled(selector: Obj | None) -> LabelSelector:
    """One that is invalid selects nothing."""
    try:
        return from_object(selector)
    except SelectorError:
        return NOTHING


class Selecting:
    """The objects of one kind, found by the labels of a pod that they select.

    Of those with a large selector, all are found: their own reconcile looks at the pods."""

    def __init__(self, selector_of: Callable[[Obj], Obj | None]) -> None:
        self._selector_of = selector_of
        self._of: dict[str, dict[Key, LabelSelector | None]] = {}  # by namespace; None: large

    def follow(self, mirror: Mirror) -> None:
        mirror.on_change(self._changed)

    def keys(self, pod: Obj, _: Context) -> Iterable[Key]:
        """For a Watch of pods."""
        labels = pod["metadata"].get("labels") or {}
        for key, selector in self._of.get(pod["metadata"]["namespace"], {}).items():
            if selector is None or selector.matches(labels):
                yield key

    def _changed(self, old: Obj | None, new: Obj | None) -> None:
        one = new or old
        if one is not None:
            self._keep(key_of(one), new)

    def _keep(self, key: Key, obj: Obj | None) -> None:
        known = self._of.setdefault(key[0], {})
        if obj is None:
            known.pop(key, None)
            if not known:
                del self._of[key[0]]
            return
        selector = self._selector_of(obj)
        known[key] = None if _is_large(selector) else compiled(selector)


def _is_large(selector: Obj | None) -> bool:
    if not selector:
        return False
    expressions = selector.get("matchExpressions") or ()
    named = sum(1 + len(each.get("values") or ()) for each in expressions)
    return len(selector.get("matchLabels") or ()) + named > _LARGE


def add_pod_index(context: Context) -> None:
    """Needed by `selected_pods`."""
    context.of(PODS).add_index(_BY_NAMESPACE, lambda pod: [pod["metadata"]["namespace"]])


async def selected_pods(context: Context, namespace: str, selector: LabelSelector) -> list[Obj]:
    turns, found = Turns(), list[Obj]()
    if selector == NOTHING:
        return found
    for pod in context.of(PODS).each(_BY_NAMESPACE, namespace):
        if selector.matches(pod["metadata"].get("labels") or {}):
            found.append(pod)
        await turns.next()
    return found
