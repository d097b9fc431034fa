"""Rules and dashboards as the chart renders them, and Debian's programs that judge them."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

CHART = Path(__file__).parent.parent.parent / "deploy" / "gpupool"


def program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"NO {name.upper()}: rules and dashboards were not tried. `make prometheus`.")
    return found


def rendered(*flags: str) -> list[dict[str, Any]]:
    helm = Path(sys.executable).with_name("helm")
    if not helm.exists():
        pytest.skip("NO HELM: rules and dashboards were not tried. It comes with helm-binary.")
    values = ("monitoring.rules.enabled=true", "monitoring.dashboards.enabled=true", *flags)
    done = subprocess.run(
        [helm, "template", "gpupool", CHART, f"--set={','.join(values)}"],
        capture_output=True,
        text=True,
        check=True,
    )
    return [each for each in yaml.safe_load_all(done.stdout) if each]


def rules(*flags: str) -> dict[str, Any]:
    (found,) = (each for each in rendered(*flags) if each["kind"] == "PrometheusRule")
    spec: dict[str, Any] = found["spec"]
    return spec


def dashboards() -> Iterator[dict[str, Any]]:
    for each in rendered():
        if each["kind"] == "ConfigMap" and "grafana_dashboard" in each["metadata"]["labels"]:
            for text in each["data"].values():
                yield json.loads(text)


def panel_expressions() -> Iterator[tuple[str, str]]:
    for dashboard in dashboards():
        for panel in dashboard["panels"]:
            for target in panel["targets"]:
                yield f"{dashboard['title']}: {panel['title']}", target["expr"]
