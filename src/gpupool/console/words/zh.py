"""Simplified Chinese, with the words of the documents. One file for each page, merged here."""

from collections.abc import Mapping

from gpupool.console.words import (
    zh_checks,
    zh_clusters,
    zh_configuration,
    zh_events,
    zh_frame,
    zh_map,
    zh_node_drain,
    zh_nodes,
    zh_overview,
    zh_past,
    zh_pod_streams,
    zh_pods,
    zh_pools,
    zh_resize,
    zh_said,
    zh_said_events,
    zh_services,
    zh_workloads,
)

ZH: Mapping[str, str] = {
    **zh_frame.WORDS,
    **zh_overview.WORDS,
    **zh_clusters.WORDS,
    **zh_checks.WORDS,
    **zh_nodes.WORDS,
    **zh_node_drain.WORDS,
    **zh_pods.WORDS,
    **zh_pod_streams.WORDS,
    **zh_map.WORDS,
    **zh_past.WORDS,
    **zh_resize.WORDS,
    **zh_said.WORDS,
    **zh_said_events.WORDS,
    **zh_services.WORDS,
    **zh_events.WORDS,
    **zh_workloads.WORDS,
    **zh_configuration.WORDS,
    **zh_pools.WORDS,
}
