"""Ways: how a card gets from a node into a container."""

from dataclasses import dataclass, field
from enum import StrEnum


class Way(StrEnum):
    RUNTIME = "runtime"  # the node's default runtime is NVIDIA's: NVIDIA_VISIBLE_DEVICES is enough
    NRI = "nri"  # our agent, as a plugin of the container runtime
    MOUNTS = "mounts"  # the device plugin mounts the driver into every GPU container
    RUNTIME_CLASS = "runtime-class"  # NVIDIA's runtime, for pods that name its runtime class
    NVIDIA_NRI = "nvidia-nri"  # NVIDIA's plugin of the container runtime, told by an annotation

    @property
    def words(self) -> str:
        return _WORDS[self]


_WORDS = {
    Way.RUNTIME: "NVIDIA's runtime, the default of the node",
    Way.NRI: "the agent, as a plugin of the container runtime",
    Way.MOUNTS: "mounts of the device plugin",
    Way.RUNTIME_CLASS: "NVIDIA's runtime, by a runtime class",
    Way.NVIDIA_NRI: "NVIDIA's plugin of the container runtime",
}

# Ways by which somebody else puts the card in, without us being asked.
OTHERS_PUT_IN = (Way.RUNTIME, Way.RUNTIME_CLASS, Way.NVIDIA_NRI)
# Where cards come by a plugin, the runtime has no handler of NVIDIA, unless the agent knows of one.
_WITHOUT_HANDLERS = (Way.NRI, Way.NVIDIA_NRI)
_NVIDIAS = "nvidia"  # names of classes of NVIDIA begin so


@dataclass(frozen=True, slots=True)
class Ways:
    """What the agent has found out about its node."""

    chosen: Way | None = None  # the one in use; None: there is none
    problem: str = ""  # why cards do not get into containers now
    known: tuple[Way, ...] = ()  # all that the node has, in the order of preference
    runtime_class: str = ""  # the class that brings cards on this node, if one does
    cdi_kind: str = ""  # the kind of CDI device that NVIDIA's plugin is told: nvidia.com/gpu
    is_pinned: bool = False  # a person has chosen, by an option or by a label of the node
    # When `chosen` came into use, as an API server writes it; empty: not known.
    since: str = field(default="", compare=False)
    # Where others put cards in: a container whose card did not get in does not start. False: it
    # runs, and is reported.
    checks_starts: bool = False

    @property
    def is_open(self) -> bool:
        """Whether a container that is made now gets its cards."""
        return self.chosen is not None and not self.problem

    def suits(self, runtime_class: str) -> bool:
        """Whether a GPU pod of this class ("": none) gets its cards on the node."""
        if runtime_class and runtime_class == self.runtime_class:
            return True
        if self.chosen is Way.RUNTIME_CLASS:
            return False
        return not (self.chosen in _WITHOUT_HANDLERS and runtime_class.startswith(_NVIDIAS))

    @property
    def words(self) -> str:
        """For people: the way in one word, and its class."""
        if self.chosen is None:
            return "none"
        if self.chosen is Way.RUNTIME_CLASS:
            return f"{self.chosen}={self.runtime_class}"
        return str(self.chosen)
