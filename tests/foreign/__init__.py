"""Small result files in the true forms of three tools, made by hand from their sources (named in each module).

guidellm 0.8: benchmarks.json; AIPerf 0.13: profile_export_aiperf.json and profile_export.jsonl; inference-perf 0.7:
stage_N_lifecycle_metrics.json with config.yaml. What ebbtide does not read is left out, but for what must not be read.
"""

from __future__ import annotations

from typing import Any

SECRET = "sk-not-to-be-seen"


def distribution(mean: float, p95: float, *, peak: float | None = None) -> dict[str, Any]:
    """guidellm's StatusDistributionSummary, of the successful ones."""
    return {
        "successful": {
            "mean": mean,
            "median": mean,
            "std_dev": 0.5 * mean,
            "min": 0.1 * mean,
            "max": peak if peak is not None else 3.0 * p95,
            "percentiles": {
                "p001": 0.1 * mean,
                "p50": mean,
                "p75": 1.2 * mean,
                "p90": 0.9 * p95,
                "p95": p95,
                "p99": 1.5 * p95,
                "p999": 2.0 * p95,
            },
        },
        "errored": None,
        "incomplete": None,
    }


def guidellm_benchmark(
    kind: str, rate_rps: float, p95_s: float, *, errored: int = 0, incomplete: int = 0, peak: float = 40.0, **more: Any
) -> dict[str, Any]:
    """One of guidellm's loads."""
    return {
        "type_": "generative_benchmark",
        "config": {
            "strategy": {"type_": kind, "worker_count": 4, "max_concurrency": 512, **more},
            "backend": {"model": "m-small", "api_key": SECRET},
        },
        "metrics": {
            "request_totals": {"successful": 600, "errored": errored, "incomplete": incomplete, "total": 600},
            "requests_per_second": distribution(rate_rps, 2.0 * rate_rps),
            "request_concurrency": distribution(0.5 * peak, 0.9 * peak, peak=peak),
            "request_latency": distribution(0.5 * p95_s, p95_s),
            "time_to_first_token_ms": distribution(100.0, 250.0),
            "inter_token_latency_ms": distribution(20.0, 40.0),
            "prompt_token_count": distribution(256.0, 300.0),
            "output_token_count": distribution(128.0, 200.0),
        },
        "start_time": 1_788_000_000.5,
        "end_time": 1_788_000_060.5,
        "duration": 60.0,
    }


def guidellm_report(*benchmarks: dict[str, Any]) -> dict[str, Any]:
    """benchmarks.json."""
    return {
        "metadata": {"version": 1, "guidellm_version": "0.8.1"},
        "args": {"target": "http://m-small:8000", "model": "m-small", "backend_kwargs": {"api_key": SECRET}},
        "benchmarks": list(benchmarks),
    }


def aiperf_summary(p95_ms: float, *, rate_rps: float = 8.0, errors: int = 0, **config: Any) -> dict[str, Any]:
    """profile_export_aiperf.json."""

    def metric(unit: str, avg: float, p95: float) -> dict[str, Any]:
        return {"unit": unit, "avg": avg, "p50": avg, "p90": 0.9 * p95, "p95": p95, "p99": 1.5 * p95, "std": avg / 2}

    return {
        "schema_version": "1.0",
        "aiperf_version": "0.13.0",
        "input_config": {
            "models": {"items": [{"name": "m-small"}]},
            "endpoint": {"urls": ["http://m-small:8000"], "api_key": SECRET, "streaming": True},
            **config,
        },
        "request_throughput": {"unit": "requests/sec", "avg": rate_rps},
        "request_count": {"unit": "requests", "avg": 500.0},
        "error_request_count": {"unit": "requests", "avg": float(errors)},
        "request_latency": metric("ms", 0.5 * p95_ms, p95_ms),
        "time_to_first_token": metric("ms", 100.0, 250.0),
        "inter_token_latency": metric("ms", 20.0, 40.0),
        "input_sequence_length": metric("tokens", 256.0, 300.0),
        "output_sequence_length": metric("tokens", 128.0, 200.0),
        "benchmark_duration": {"unit": "sec", "avg": 62.5},
        "start_time": "2026-09-10T14:02:00.125000",
    }


def phase(kind: str, **more: Any) -> list[dict[str, Any]]:
    """AIPerf's phases."""
    warm = {"name": "warmup", "kind": "warmup", "type": "concurrency", "concurrency": 1}
    return [warm, {"name": "profiling", "kind": "profiling", "type": kind, **more}]


def aiperf_record(start_s: float, latency_ms: float, **more: Any) -> dict[str, Any]:
    """A line of profile_export.jsonl."""
    start_ns = int(1_788_000_000e9 + start_s * 1e9)
    return {
        "metadata": {
            "request_start_ns": start_ns,
            "request_end_ns": start_ns + int(latency_ms * 1e6),
            "benchmark_phase": "profiling",
            "was_cancelled": False,
        },
        "metrics": {
            "request_latency": {"value": latency_ms, "unit": "ms"},
            "input_sequence_length": {"value": 256, "unit": "tokens"},
            "output_sequence_length": {"value": 128, "unit": "tokens"},
        },
        "error": None,
        **more,
    }


def inference_perf_stage(rate_rps: float, p95_s: float, *, failed: int = 0, **load: Any) -> dict[str, Any]:
    """stage_N_lifecycle_metrics.json."""

    def summary(mean: float, p95: float) -> dict[str, float]:
        return {
            "mean": mean,
            "min": 0.0,
            "max": 3 * p95,
            "median": mean,
            "p90": 0.9 * p95,
            "p95": p95,
            "p99": 1.5 * p95,
        }

    return {
        "benchmark_time_seconds": 61.0,
        "load_summary": {
            "count": 600 + failed,
            "schedule_delay": summary(0.001, 0.002),
            "send_duration": 60.0,
            "requested_rate": rate_rps,
            "achieved_rate": rate_rps,
            **load,
        },
        "successes": {
            "count": 600,
            "latency": {
                "request_latency": summary(0.5 * p95_s, p95_s),
                "time_to_first_token": summary(0.1, 0.25),
                "time_per_output_token": summary(0.02, 0.04),
                "inter_token_latency": summary(0.02, 0.05),
                "normalized_time_per_output_token": summary(0.03, 0.06),
            },
            "throughput": {"requests_per_sec": 0.98 * rate_rps},
            "prompt_tokens": {"total": 153_600.0, "mean": 256.0},
            "output_tokens": {"total": 76_800.0, "mean": 128.0},
        },
        "failures": {"count": failed, "by_label": {}},
    }


INFERENCE_PERF_CONFIG = f"""\
load: {{type: poisson, num_workers: 4, worker_max_concurrency: 100, stages: [{{rate: 4.0, duration: 60}}]}}
server: {{model_name: m-small, base_url: "http://m-small:8000", api_key: {SECRET}}}
"""
