"""The metrics of NVIDIA's dcgm-exporter, under its names and with its labels, from our readings.

As dcgm-exporter does it for shared cards (its option --kubernetes-virtual-gpus): a card has one
series for each container that has a part of it, or one without a pod if there is none. On shared
cards, the used memory and the utilisation are those of the container; all other values are those of
the card. What the driver does not tell has no series.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily, UnknownMetricFamily

from gpupool.core.gpu import Card
from gpupool.core.readings import CardReading, ContainerUse

LABELS = (
    "gpu",
    "UUID",
    "device",
    "modelName",
    "Hostname",
    "DCGM_FI_DRIVER_VERSION",
    "namespace",
    "pod",
    "container",
)


class Seen(NamedTuple):
    """A card, and one container on it."""

    card: Card
    reading: CardReading
    use: ContainerUse | None
    is_shared: bool
    last_xid: int

    @property
    def sm_percent(self) -> int | None:
        return self.use.sm_percent if self.use and self.is_shared else self.reading.sm_percent

    @property
    def used_mib(self) -> int | None:
        if self.use and self.is_shared:
            return self.use.memory_used_mib
        return self.reading.memory_used_mib


class _Field(NamedTuple):
    name: str
    help_text: str
    value: Callable[[Seen], float | None]
    is_counter: bool = False


_FIELDS = (
    _Field("DEV_SM_CLOCK", "SM clock frequency (in MHz).", lambda seen: seen.reading.sm_clock_mhz),
    _Field(
        "DEV_MEM_CLOCK",
        "Memory clock frequency (in MHz).",
        lambda seen: seen.reading.memory_clock_mhz,
    ),
    _Field("DEV_GPU_TEMP", "GPU temperature (in C).", lambda seen: seen.reading.temperature_c),
    _Field(
        "DEV_POWER_USAGE",
        "Power draw of the card (in W).",
        lambda seen: None if seen.reading.power_mw is None else seen.reading.power_mw / 1000,
    ),
    _Field(
        "DEV_TOTAL_ENERGY_CONSUMPTION",
        "Energy of the card since the driver was loaded (in mJ).",
        lambda seen: seen.reading.energy_mj,
        is_counter=True,
    ),
    _Field(
        "DEV_GPU_UTIL",
        "GPU utilization (in %). On a shared card: of the container.",
        lambda seen: seen.sm_percent,
    ),
    _Field(
        "DEV_MEM_COPY_UTIL",
        "Utilization of the card's memory (in %).",
        lambda seen: seen.reading.memory_percent,
    ),
    _Field(
        "DEV_ENC_UTIL", "Encoder utilization (in %).", lambda seen: seen.reading.encoder_percent
    ),
    _Field(
        "DEV_DEC_UTIL", "Decoder utilization (in %).", lambda seen: seen.reading.decoder_percent
    ),
    _Field(
        "DEV_XID_ERRORS", "The last XID error that the agent has seen.", lambda seen: seen.last_xid
    ),
    _Field(
        "DEV_FB_TOTAL", "Memory of the card (in MiB).", lambda seen: seen.reading.memory_total_mib
    ),
    _Field(
        "DEV_FB_FREE",
        "Free memory of the card (in MiB).",
        lambda seen: seen.reading.memory_free_mib,
    ),
    _Field(
        "DEV_FB_USED",
        "Memory in use (in MiB). On a shared card: by the container.",
        lambda seen: seen.used_mib,
    ),
    _Field(
        "DEV_FB_RESERVED",
        "Memory that the driver reserves for itself (in MiB).",
        lambda seen: seen.reading.memory_reserved_mib,
    ),
    # DCGM measures it by counters of the hardware. The driver's utilisation is about the same: the
    # part of time in which a kernel ran.
    _Field(
        "PROF_GR_ENGINE_ACTIVE",
        "Ratio of time in which kernels ran. On a shared card: those of the container.",
        lambda seen: None if seen.sm_percent is None else seen.sm_percent / 100,
    ),
    _Field(
        "PROF_PIPE_TENSOR_ACTIVE",
        "Ratio of time in which tensor cores of the card computed.",
        lambda seen: None if (told := seen.reading.tensor_percent) is None else told / 100,
    ),
)


def dcgm_metrics(node: str, driver: str, seen: list[Seen]) -> Iterator[Metric]:
    labels = [_labels(node, driver, each) for each in seen]
    for field in _FIELDS:
        # Without a type for counters: prometheus_client would add "_total" to the name.
        kind = UnknownMetricFamily if field.is_counter else GaugeMetricFamily
        metric = kind(f"DCGM_FI_{field.name}", field.help_text, labels=LABELS)
        for each, values in zip(seen, labels, strict=True):
            value = field.value(each)
            if value is not None:
                metric.add_metric(values, value)
        yield metric


def _labels(node: str, driver: str, seen: Seen) -> tuple[str, ...]:
    card, use = seen.card, seen.use
    who = (use.namespace, use.pod, use.container) if use else ("", "", "")
    return (str(card.index), card.uuid, f"nvidia{card.index}", card.model, node, driver, *who)
