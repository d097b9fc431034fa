"""Whether a pod is refused: read in the words of whoever wrote it, then looked at."""

from collections.abc import Set

from gpupool.admission.cards import ClusterCards
from gpupool.admission.complaints import complaints
from gpupool.admission.foreign.systems import System
from gpupool.admission.foreign.translate import Translation, translate
from gpupool.admission.legacy import modernise
from kubeclient.objects import Obj


def put_into_our_words(
    pod: Obj, cards: ClusterCards, systems: Set[System]
) -> tuple[list[str], Translation]:
    """Changes the pod. Returns why it is refused, and what became of words of other systems."""
    wrong = modernise(pod, cards.labels)
    translation = Translation() if wrong else translate(pod, cards, systems)
    wrong += translation.wrong
    return wrong or complaints(pod, cards), translation
