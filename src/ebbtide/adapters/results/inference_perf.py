"""inference-perf's stage_N_lifecycle_metrics.json: a load a file; how it was sent stands in config.yaml beside it.

Form: kubernetes-sigs/inference-perf, inference_perf/reportgen/base.py (``summarize_requests``), versions 0.2 to 0.7.
"""

from __future__ import annotations

from math import nan
from typing import Any

from ebbtide.adapters.results.tree import at, count, first_number, number, pairs, text
from ebbtide.capacity.levels import Level

TOOL = "inference-perf"
CONFIG = "config.yaml"
METRICS = {
    "latency": "request_latency",
    "firstToken": "time_to_first_token",
    "betweenTokens": "time_per_output_token",
}
CLOSED = ("concurrent",)


def is_inference_perf(tree: Any) -> bool:
    """Whether the file is one of its lifecycle reports."""
    return at(tree, "load_summary", "count") is not None and at(tree, "successes", "count") is not None


def is_summary(tree: Any) -> bool:
    """Whether the file is over all stages, whatever their rates: no load."""
    return at(tree, "load_summary", "requested_rate") is None


def inference_perf_level(tree: Any, config: Any, file: str) -> Level:
    """The stage's load."""
    load, successes = at(tree, "load_summary"), at(tree, "successes")
    kind, streams = text(config, "load", "type"), count(load, "concurrency") or None
    closed = streams is not None or kind in CLOSED
    each, workers = count(config, "load", "worker_max_concurrency"), count(config, "load", "num_workers")
    return Level(
        file=file,
        rate_rps=number(successes, "throughput", "requests_per_sec"),
        offered_rps=nan if closed else number(load, "requested_rate"),
        answered=count(successes, "count"),
        failed=count(tree, "failures", "count"),
        quantiles={name: _quantiles(at(successes, "latency", key)) for name, key in METRICS.items()},
        open_loop=False if closed else None if kind is None else True,
        arrivals="concurrent" if closed else kind,
        cap=streams or (each * workers or None),
        lateness_s=number(load, "schedule_delay", "p99"),
        seconds=number(tree, "benchmark_time_seconds"),
        input_tokens=first_number(number(successes, "prompt_tokens", "mean"), number(successes, "prompt_len", "mean")),
        output_tokens=first_number(number(successes, "output_tokens", "mean"), number(successes, "output_len", "mean")),
    )


def inference_perf_model(config: Any) -> str | None:
    """The model asked."""
    return text(config, "server", "model_name")


def _quantiles(summary: Any) -> tuple[tuple[float, float], ...]:
    found = {0.5: number(summary, "median")}
    for key in summary if isinstance(summary, dict) else ():
        if key.startswith("p") and key[1:].replace(".", "", 1).isdigit():
            found[float(key[1:]) / 100.0] = number(summary, key)
    return pairs({share: seconds for share, seconds in found.items() if 0.5 <= share < 1.0})
