"""Figures as a table: ours, the aim, and a real kube-apiserver's where there is one. Pure."""

from collections.abc import Sequence
from typing import Any

from bench.constraints import constraint_rows
from bench.history import history_rows
from bench.kept_room import kept_room_rows
from bench.mixes import line as mixes_line
from bench.packing import line as packing_line
from bench.plans import plan_rows
from bench.restart import restart_rows

_ROWS = (
    ("durable POST pod, one template", "post_pod", "3,000/s"),
    ("durable POST pod, all different", "post_different_pods", ""),
    ("binding, durable", "binding", "5,000/s"),
    ("GET pod", "get_pod", ""),
    ("list of 5,000 pods", "list_5000", "< 20 ms CPU"),
)


def table(figures: dict[str, Any]) -> str:
    rows = [("", "gpupool", "aim", "kube-apiserver + etcd")]
    ours, real = figures.get("apiserver") or {}, figures.get("kubernetes") or {}
    for title, key, aim in _ROWS:
        if key in ours:
            rows.append((title, _load(ours[key]), aim, _load(real.get(key))))
    if ours:
        rows += _more(ours, real)
    if start := figures.get("start"):
        rows.append(("start until ready", f"{start['best_s']:.2f} s", "< 2 s", ""))
    if gpus := figures.get("gpus"):
        rows += _gpu_rows(gpus)
    if scale := figures.get("scale"):
        title = f"{scale['nodes']:,} nodes, {scale['pods']:,} pods Running"
        took = f"{scale['seconds']:.0f} s"
        if scale["running"] < scale["pods"]:
            took = f"only {scale['running']:,} after {took}"
        rows.append((title, took, "< 60 s", ""))
    for name, rows_of in _PARTS.items():
        if found := figures.get(name):
            rows += rows_of(found)
    return aligned(rows)


def _gpu_rows(gpus: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    title = f"{gpus['counted']:,} of {gpus['nodes']:,} GPU nodes with agents"
    took = f"{gpus['seconds']:.0f} s, {gpus['memory_mib']:,} MiB"
    rows = [(title, took, "< 30 s, < 2,048 MiB", "")]
    if "readings" in gpus:
        worked = f"{gpus['readings_client_cpu_seconds']:.1f} s of the client's CPU"
        took = f"{gpus['readings_seconds']:.1f} s, {worked}"
        rows.append((f"readings of {gpus['readings']:,} GPU nodes", took, "", ""))
    return rows


def _sampling(figures: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    rows = []
    for size, found in figures.items():
        cards, pods = size.split("x")
        title = f"agent: {cards} cards, {pods} pods"
        cost = (
            f"{found['percent_of_a_core']:.2f} % of a core ({found['sample_ms']:.1f} ms a sample)"
        )
        aim = "< 0.2 % of a core" if size == "8x100" else ""
        rows.append((f"{title}, sampled", cost, aim, ""))
        scrape = f"{found['scrape_ms']:.0f} ms CPU, {found['scrape_bytes'] / 1024:.0f} KiB"
        rows.append((f"{title}, scraped", f"{scrape}, {found['series']:,} series", "", ""))
    return rows


def _limiter(figures: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """Without the limiter in the last column, from the same run."""
    titles = {
        "pair_1": ("limiter: cuMemAlloc + cuMemFree, 1 process", "+60 ns CPU"),
        "pair_8": ("limiter: the same, 8 processes", ""),
        "pair_64": ("limiter: the same, 64 processes", "+100 ns CPU"),
        "launch": ("limiter: cuLaunchKernel", ""),
        "launch_shared": ("limiter: cuLaunchKernel, with a share of compute", ""),
    }
    rows = [
        (title, f"+{figures[key]['added_ns']:.0f} ns CPU", aim, f"({figures[key]['bare_ns']:.0f})")
        for key, (title, aim) in titles.items()
    ]
    start = figures["start_us"]
    added = f"+{start['limited_us'] - start['bare_us']:.0f} us"
    return [*rows, ("limiter: start of a program", added, "", f"({start['bare_us']:.0f})")]


def _engine(engine: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    rows = []
    for size in engine["sizes"]:
        for kind in ("whole", "shared", "mixed"):
            title = f"{size['nodes']:,} nodes x 8, {kind} GPUs, {engine['policy']}"
            speed = size[kind]
            shown = f"{speed['per_second']:,.0f}/s, best {speed['best_per_second']:,.0f}/s"
            rows.append((title, shown, "20,000/s at 5,000", ""))
        title = f"explain on {size['nodes']:,} nodes"
        rows.append((title, f"{size['explain_ms']:.0f} ms CPU", "< 100 ms at 5,000", ""))
    rows.append(("memory of the engine's runs", f"{engine['peak_mb']} MB at most", "", ""))
    return rows


def _mixes(mixes: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    rows = []
    for row in mixes["rows"]:
        name = row["trace"].removeprefix("openb_pod_list_").removesuffix(".csv")
        how = "fill up" if row["method"] == "filling" else "under churn"
        title = f"{row['nodes']:,} nodes {how}, mix of {name}, {mixes['policy']}"
        rows.append((title, mixes_line(row), "20,000/s at 5,000", ""))
    return rows


def _packing(packing: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    kind = "synthetic traces" if packing["synthetic"] else "openb traces"
    head = f"GPU packed at 100 % arrival, {kind}, {packing['seeds']} seeds"
    rows = [(head, "filling", "churn at 95 %", "churn at 100 %: GPU / multi-GPU pods, %")]
    for row in packing["rows"]:
        name, policy, filled, *churned = packing_line(row)
        rows.append((f"{name}, {policy}", filled, churned[0], churned[1]))
    return rows


def _scheduler(scheduler: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    rows = []
    for burst in scheduler["bursts"]:
        title = f"{burst['pods']:,} pods bound on {burst['nodes']:,} nodes, API server included"
        shown = f"{burst['per_second']:,.0f}/s, {burst['cpu_us']:.0f} us CPU"
        rows.append((title, shown, "", ""))
    release = scheduler["release_to_bind"]
    shown = f"p50 {release['p50_ms']:.0f} ms, p99 {release['p99_ms']:.0f} ms"
    return [*rows, ("a share released until it is bound again", shown, "p99 < 50 ms", "")]


def _more(ours: dict[str, Any], real: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    watch = ours["watch"]
    fanned = f"{watch['watchers']} watchers x {watch['events']:,} events"
    rest = f"{real['at_rest_mb']:.0f} MB" if real else ""
    return [
        (fanned, f"{watch['seconds']:.1f} s, {watch['cpu_s']:.1f} s CPU", "", ""),
        ("memory at rest", f"{ours['at_rest_mb']:.0f} MB", "100 MB", rest),
        (f"memory with {ours['filled_to']:,} pods", f"{ours['filled_mb']:.0f} MB", "", ""),
        ("longest answer meanwhile", f"{ours['longest_ms_while_filling']:.0f} ms", "50 ms", ""),
    ]


def _load(load: dict[str, Any] | None) -> str:
    if not load:
        return ""
    cpu = load["cpu_us"]
    shown = f"{cpu / 1000:.1f} ms" if cpu >= 10_000 else f"{cpu:.0f} us"
    text = f"{load['per_second']:,.0f}/s, {shown} CPU, p99 {load['p99_ms']:.0f} ms"
    return f"{text}, {len(load['failures'])}+ FAILED" if load["failures"] else text


def aligned(rows: Sequence[tuple[str, ...]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def _nri(figures: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    rows = []
    aim = "p99 < 5 ms"
    asked = (("with a card", "card", aim), ("that starts", "start", aim), ("without", "bare", ""))
    for title, key, aim in asked:
        found = figures[key]
        took = f"p50 {found['p50_ms']:.1f} ms, p99 {found['p99_ms']:.1f} ms"
        took += f"; CPU p50 {found['cpu_p50_ms']:.1f} ms, p99 {found['cpu_p99_ms']:.1f} ms"
        rows.append((f"NRI: a container {title}", took, aim, ""))
    return rows


_PARTS = {
    "sampling": _sampling,
    "engine": _engine,
    "mixes": _mixes,
    "constraints": constraint_rows,
    "plans": plan_rows,
    "kept_room": kept_room_rows,
    "scheduler": _scheduler,
    "restart": restart_rows,
    "packing": _packing,
    "limiter": _limiter,
    "nri": _nri,
    "history": history_rows,
}
