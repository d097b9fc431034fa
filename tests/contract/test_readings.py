import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpupool.contract.readings import MOST_BYTES, BadReadings, readings_of, readings_text
from gpupool.core.gpu import Wall
from gpupool.core.readings import CardReading, ContainerUse, NodeReadings

maybe = st.none() | st.integers(0, 100)
names = st.text("ab-", max_size=3)
uses = st.builds(
    ContainerUse,
    names,
    names,
    names,
    maybe,
    names,
    maybe,
    maybe,
    st.none() | st.sampled_from(Wall),
    maybe,
    maybe,
    maybe.map(lambda value: None if value is None else float(value)),
    maybe,
    maybe.map(lambda value: None if value is None else float(value)),
)
cards = st.builds(
    CardReading,
    st.sampled_from(["GPU-a", "GPU-b"]),
    *[maybe] * 9,
    st.none() | st.lists(uses, max_size=2).map(tuple),
    *[maybe] * 5,
)


@given(st.lists(cards, max_size=3).map(tuple), st.integers(0, 2**33))
def test_readings_are_read_as_they_were_written(
    found: tuple[CardReading, ...], taken_at_s: float
) -> None:
    readings = NodeReadings("node-1", taken_at_s, found)
    assert readings_of(readings_text(readings)) == readings


def test_fields_have_units_and_what_is_unknown_is_left_out() -> None:
    use = ContainerUse("ns", "p", "c", 1, "u", 2, 3, Wall.DRIVER, 4, 5, 6.5, 7, 8.5)
    other = ContainerUse("ns", "p", "", None)
    card = CardReading("GPU-a", 1, 2, 3, 4, 5, 6, 7, 8, 9, (use, other), 10, 11, 12, 13, 14, 15)
    text = readings_text(NodeReadings("n", 1.5, (card, CardReading("GPU-b"))))
    assert json.loads(text) == {
        "version": 1,
        "node": "n",
        "takenAtSeconds": 1.5,
        "cards": [
            {
                "uuid": "GPU-a",
                "memoryUsedMiB": 1,
                "memoryFreeMiB": 2,
                "memoryTotalMiB": 3,
                "smPercent": 4,
                "memoryPercent": 5,
                "temperatureCelsius": 6,
                "powerMilliwatts": 7,
                "powerLimitMilliwatts": 8,
                "smClockMHz": 9,
                "containers": [
                    {
                        "namespace": "ns",
                        "pod": "p",
                        "container": "c",
                        "uid": "u",
                        "memoryUsedMiB": 1,
                        "memoryRequestMiB": 2,
                        "memoryLimitMiB": 3,
                        "isolation": "driver",
                        "memoryPeakMiB": 4,
                        "smPercent": 5,
                        "idleSeconds": 6.5,
                        "powerMilliwatts": 7,
                        "watchedSinceSeconds": 8.5,
                    },
                    {"namespace": "ns", "pod": "p"},
                ],
                "memoryReservedMiB": 10,
                "memoryClockMHz": 11,
                "energyMillijoules": 12,
                "encoderPercent": 13,
                "decoderPercent": 14,
                "tensorPercent": 15,
            },
            {"uuid": "GPU-b"},
        ],
    }


def document(**changes: object) -> str:
    return json.dumps({"version": 1, "node": "n", "takenAtSeconds": 1, "cards": []} | changes)


def with_card(**fields: object) -> str:
    return document(cards=[{"uuid": "GPU-a"} | fields])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "Input data was truncated"),
        ("[" * 100_000, "Expected `object`"),
        (" " * MOST_BYTES + "{}", f"at most {MOST_BYTES} are read"),
        (json.dumps({"version": 2, "shelves": []}), "version 2; this program reads version 1"),
        (document(cards=[{"uuid": f"GPU-{n}"} for n in range(65)]), "length <= 64"),
        (document(takenAtSeconds=-1), "Expected `float` >= 0"),
        (with_card(smPercent=101), "Expected `int` <= 100"),
        (with_card(memoryUsedMiB=2**41), "Expected `int` <= 16777216"),
        (with_card(powerMilliwatts=-1), "Expected `int` >= 0"),
        (with_card(temperatureCelsius="warm"), "Expected `int | null`"),
        (with_card(containers=[{"namespace": "n"}]), "pod"),
        (with_card(containers=[{"namespace": "n", "pod": "p", "isolation": "air"}]), "air"),
        (with_card(containers=[{"namespace": "n", "pod": "p", "idleSeconds": -1}]), ">= 0"),
        (
            with_card(containers=[{"namespace": "n" * 999, "pod": "p", "memoryUsedMiB": 1}]),
            "length <= 253",
        ),
    ],
)
def test_readings_that_are_none_are_refused(text: str, said: str) -> None:
    with pytest.raises(BadReadings, match=said.replace("|", r"\|")):
        readings_of(text)
