"""guidellm's benchmarks.json (or .yaml): one benchmark a load.

Form: vllm-project/guidellm, src/guidellm/benchmark/schemas/generative/{report,benchmark,metrics}.py and
src/guidellm/scheduler/strategies.py, versions 0.4 to 0.8; up to 0.3 the strategy stood under ``args``.
"""

from __future__ import annotations

from math import isfinite
from typing import Any

from ebbtide.adapters.results.tree import at, count, first_number, number, pairs, scv, text
from ebbtide.capacity.levels import Level

TOOL = "guidellm"
SHARES = {"p50": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
# Where a metric stands, and seconds of its unit.
METRICS = {
    "latency": ("request_latency", 1.0),
    "firstToken": ("time_to_first_token_ms", 1e-3),
    "betweenTokens": ("inter_token_latency_ms", 1e-3),
}
RATES = ("constant", "poisson")


def is_guidellm(tree: Any) -> bool:
    """Whether the file is one of guidellm's."""
    first = at(tree, "benchmarks", 0)
    return at(first, "metrics", "requests_per_second") is not None


def guidellm_levels(tree: Any, file: str) -> list[Level]:
    """Its loads."""
    return [_level(one, file) for one in at(tree, "benchmarks") or []]


def guidellm_model(tree: Any) -> str | None:
    """The model asked."""
    return text(tree, "args", "model") or text(tree, "benchmarks", 0, "config", "backend", "model")


def _level(one: Any, file: str) -> Level:
    strategy = at(one, "config", "strategy") or at(one, "args", "strategy")
    kind, metrics = text(strategy, "type_"), at(one, "metrics")
    totals = at(metrics, "request_totals") or at(one, "run_stats", "requests_made")
    cap, peak = count(strategy, "max_concurrency"), number(metrics, "request_concurrency", "successful", "max")
    tokens = {side: at(metrics, f"{side}_token_count", "successful") for side in ("prompt", "output")}
    return Level(
        file=file,
        rate_rps=number(metrics, "requests_per_second", "successful", "mean"),
        offered_rps=number(strategy, "rate") if kind in RATES else float("nan"),
        answered=count(totals, "successful") or count(metrics, "request_latency", "successful", "count"),
        failed=count(totals, "errored"),
        cut_off=count(totals, "incomplete"),
        quantiles={
            name: pairs(
                {share: scale * number(metrics, key, "successful", "percentiles", p) for p, share in SHARES.items()}
            )
            for name, (key, scale) in METRICS.items()
        },
        concurrency=number(metrics, "request_concurrency", "successful", "mean"),
        open_loop=None if kind is None else kind in RATES,
        arrivals=kind,
        cap=cap or None,
        # The scheduler writes its own ceiling into every strategy: only one that was reached held requests back.
        cap_reached=peak >= cap if cap and isfinite(peak) else None,
        seconds=number(one, "duration"),
        started_s=first_number(number(one, "start_time"), number(one, "run_stats", "start_time")),
        input_tokens=number(tokens["prompt"], "mean"),
        input_scv=scv(number(tokens["prompt"], "mean"), number(tokens["prompt"], "std_dev")),
        output_tokens=number(tokens["output"], "mean"),
        output_scv=scv(number(tokens["output"], "mean"), number(tokens["output"], "std_dev")),
    )
