"""One word for one thing, as the command line, the events and the documents have it."""

from collections.abc import Mapping

from gpupool.console.words import word
from gpupool.core.gpu import CardHealth

HEALTH: Mapping[str, str] = {
    CardHealth.HEALTHY: word("healthy"),
    CardHealth.SUSPECT: word("suspect"),
    CardHealth.UNHEALTHY: word("unhealthy"),
    CardHealth.CORDONED: word("cordoned"),
    CardHealth.LOST: word("lost"),
}
# What holds a part of a card to its share: the keys are those of `Part.wall_class`.
WALLS: Mapping[str, str] = {
    "driver": word("isolation: driver"),
    "limiter": word("isolation: limiter"),
    "none": word("isolation: none"),
    "whole": word("whole card"),
    "unknown": word("which cards it holds cannot be read"),
}
# The same beside the word "Isolation".
ISOLATION: Mapping[str, str] = {
    "driver": word("driver"),
    "limiter": word("limiter"),
    "none": word("none"),
    "whole": word("whole card"),
    "unknown": word("not known"),
}
