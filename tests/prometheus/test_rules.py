"""promtool judges the chart's rules, and every alert fires when it should."""

import subprocess
from pathlib import Path

import pytest
import yaml

from tests.prometheus.chart_rules import dashboards, program, rules

pytestmark = pytest.mark.clients


def test_promtool_finds_nothing_wrong_with_the_rules(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump(rules()), encoding="utf-8")
    command = [program("promtool"), "check", "rules", "--lint=all", "--lint-fatal", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


_CARD = 'node="n",gpu="0",uuid="GPU-a"'
_USE = f'{_CARD},namespace="ns",pod="p",container="c"'
_POD = 'node="n",namespace="ns",pod="p",uuid="GPU-a"'
# By alert: series with which it fires after ten minutes, and with which it does not.
STORIES: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "GpuCardSick": (
        {f'gpupool_card_health{{{_CARD},state="lost"}}': "1x60"},
        {
            f'gpupool_card_health{{{_CARD},state="healthy"}}': "1x60",
            f'gpupool_card_health{{{_CARD},state="cordoned"}}': "1x60",
            f'gpupool_card_health{{{_CARD},state="lost"}}': "0x60",
        },
    ),
    "GpuDriverDown": (
        {'gpupool_driver_up{node="n"}': "0x60", 'gpupool_card_memory_mib{node="n"}': "9x60"},
        # A node that has no cards has no driver, either.
        {'gpupool_driver_up{node="n"}': "0x60", 'gpupool_card_memory_mib{node="m"}': "9x60"},
    ),
    "GpuPodOverShare": (
        {f"gpupool_overuse_memory_mib{{{_POD}}}": "5000x60"},
        {f"gpupool_container_memory_used_bytes{{{_USE}}}": "5000x60"},
    ),
    "GpuContainerWithoutCard": (
        {'gpupool_container_without_card{node="n",namespace="ns",pod="p",container="c"}': "1x60"},
        {f"gpupool_container_memory_request_bytes{{{_USE}}}": "2097152x60"},
    ),
    "GpuAuditMismatch": (
        {f"gpupool_container_memory_used_bytes{{{_USE}}}": "1048576x60"},
        {
            f"gpupool_container_memory_used_bytes{{{_USE}}}": "1048576x60",
            f"gpupool_container_memory_request_bytes{{{_USE}}}": "2097152x60",
        },
    ),
    "GpuPodIdle": (
        {
            f"gpupool_container_idle_seconds{{{_USE}}}": "7201x60",
            f"gpupool_container_memory_request_bytes{{{_USE}}}": "2097152x60",
        },
        {
            f"gpupool_container_idle_seconds{{{_USE}}}": "7199x60",
            f"gpupool_container_memory_request_bytes{{{_USE}}}": "2097152x60",
        },
    ),
    "GpuPodsWaiting": (
        {"gpupool_scheduler_oldest_pending_seconds{}": "901x60"},
        {"gpupool_scheduler_oldest_pending_seconds{}": "899x60"},
    ),
}


def test_alerts_fire_when_they_should_and_only_then(tmp_path: Path) -> None:
    spec = rules()
    alerts = [rule for group in spec["groups"] for rule in group["rules"] if "alert" in rule]
    assert {rule["alert"] for rule in alerts} == STORIES.keys()
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(spec), encoding="utf-8")
    tests = []
    for name, (fires, quiet) in STORIES.items():
        for series, count in ((fires, 1), (quiet, 0)):
            values = [{"series": key, "values": value} for key, value in series.items()]
            ask = {
                "expr": f'count(ALERTS{{alertname="{name}",alertstate="firing"}})',
                "eval_time": "10m",
            }
            samples = [{"labels": "{}", "value": count}] if count else []
            tests.append(
                {
                    "interval": "10s",
                    "input_series": values,
                    "promql_expr_test": [{**ask, "exp_samples": samples}],
                }
            )
    file = tmp_path / "tests.yaml"
    document = {"rule_files": ["rules.yaml"], "evaluation_interval": "10s", "tests": tests}
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    done = subprocess.run(
        [program("promtool"), "test", "rules", file], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_panels_do_not_overlap_and_have_titles_and_units() -> None:
    uids = set()
    for dashboard in dashboards():
        uids.add(dashboard["uid"])
        taken: set[tuple[int, int]] = set()
        for panel in dashboard["panels"]:
            place = panel["gridPos"]
            cells = {
                (x, y)
                for x in range(place["x"], place["x"] + place["w"])
                for y in range(place["y"], place["y"] + place["h"])
            }
            assert not taken & cells, panel["title"]
            assert max(x for x, _ in cells) < 24
            taken |= cells
            assert panel["title"]
            assert panel["fieldConfig"]["defaults"]["unit"]
    assert len(uids) == 4
