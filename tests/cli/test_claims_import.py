"""`ebbtide claims import`: three tools' files as claims, with warnings of how they were measured; and files of none."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ruamel.yaml import YAML

from ebbtide.adapters.documents.claim import read_claim
from foreign import (
    INFERENCE_PERF_CONFIG,
    SECRET,
    aiperf_record,
    aiperf_summary,
    guidellm_benchmark,
    guidellm_report,
    inference_perf_stage,
    phase,
)

TARGET = """\
apiVersion: ebbtide.dev/v1alpha1
kind: Target
metadata: {name: chat}
spec:
  endpoint: {url: "http://m-small:8000/v1/chat/completions", stream: true}
  requests: {prompts: prompts.jsonl}
  targets: [{latency: 2s}, {firstToken: 500ms}]
  errorBudget: 0.02
  hardware: {gpuModel: H100, gpus: 2}
  replicas: 2
"""
Command = Callable[..., Any]


@pytest.fixture
def target(tmp_path: Path) -> Path:
    path = tmp_path / "target.yaml"
    path.write_text(TARGET, encoding="utf-8")
    return path


def write(folder: Path, name: str, *trees: Any) -> Path:
    """A file of JSON, several values as lines."""
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(json.dumps(one) for one in trees), encoding="utf-8")
    return path


def imported(ebbtide: Command, *files: Path, target: Path, code: int = 0) -> dict[str, Any]:
    """What the command answers; the claim, where there is one, holds no secret."""
    told = ebbtide("claims", "import", *files, "--target", target, "-o", target.parent / "claim.yaml", "--json")
    assert told.code == code, told.err + told.out
    claim = target.parent / "claim.yaml"
    assert SECRET not in told.out + told.err + (claim.read_text() if claim.exists() else "")
    return json.loads(told.out)


def claimed(target: Path) -> dict[str, Any]:
    return YAML(typ="safe").load((target.parent / "claim.yaml").read_text(encoding="utf-8"))["spec"]


def test_guidellm_s_sweep(ebbtide: Command, target: Path, tmp_path: Path) -> None:
    loads = [("poisson", 2.0, 0.8), ("poisson", 4.0, 1.6), ("poisson", 8.0, 2.4), ("throughput", 12.0, 9.0)]
    report = guidellm_report(
        *(guidellm_benchmark(kind, 0.98 * rate, p95, rate=rate, random_seed=42) for kind, rate, p95 in loads)
    )
    path = write(tmp_path, "benchmarks.json", report)
    answer, claim = imported(ebbtide, path, target=target), claimed(target)
    assert (answer["tool"], answer["limited_by"], answer["open_loop"]) == ("guidellm", "latency", True)
    assert [one["arrivals"] for one in answer["levels"]] == ["poisson", "poisson", "poisson", "throughput"]
    # A replica's, of two: 0.98 × 4 answered a second, and 0.98 × 8 were too many.
    assert claim["sustained"] == {
        "lowRps": 1.96,
        "highRps": 3.92,
        "limitedBy": "latency",
        "resolved": False,
        "monotone": True,
        "replicas": 2,
    }
    assert claim["targets"] == [{"latency": "2s", "percentile": 0.95}, {"firstToken": "500ms", "percentile": 0.95}]
    assert claim["hardware"] == {"gpuModel": "H100", "gpus": 2}
    assert claim["settings"] == {"modelRevision": "m-small"}
    assert claim["measuredAt"] == "2026-08-29T10:40:00+00:00"
    assert claim["method"]["tool"] == "guidellm"
    assert claim["method"]["measured"] == "4m"
    assert (claim["method"]["inputTokens"], claim["method"]["outputScv"]) == (256, 0.25)
    assert claim["evidence"]["sha256"] == "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()
    assert (tmp_path / claim["evidence"]["file"]).samefile(path)
    # Its own ceiling of 512 was never reached, so it held nobody back.
    assert claim["warnings"] == [
        "guidellm's latencies count from when it sent, not from when it was to send",
        "no interval: the percentiles of 600 requests, taken as they are",
    ]
    assert read_claim(tmp_path / "claim.yaml").claim.sustained.low_rps == 1.96


def test_a_cap_that_was_reached_is_told(ebbtide: Command, target: Path, tmp_path: Path) -> None:
    one = guidellm_benchmark("poisson", 4.0, 1.0, rate=4.0, peak=512.0)
    answer = imported(ebbtide, write(tmp_path, "benchmarks.json", guidellm_report(one)), target=target)
    said = "at most 512 requests in flight, and they were reached: beyond them requests waited in the tool, uncounted"
    assert said in answer["warnings"]
    assert "no load that was tried misses a target: the service may hold more" in answer["warnings"]
    assert answer["replica_high_rps"] is None


@pytest.mark.parametrize(
    ("benchmark", "said"),
    [
        (guidellm_benchmark("concurrent", 4.0, 1.0, streams=16), "closed loop (concurrent, at most 512 in flight)"),
        (guidellm_benchmark("throughput", 4.0, 1.0), "closed loop (throughput, "),
        (guidellm_benchmark("constant", 4.0, 1.0, rate=4.0), "arrivals were constant, not Poisson"),
        (guidellm_benchmark("poisson", 4.0, 1.0, rate=4.0, incomplete=40), "40 requests were cut off at the end"),
    ],
)
def test_how_guidellm_sent_is_told(
    ebbtide: Command, target: Path, tmp_path: Path, benchmark: dict[str, Any], said: str
) -> None:
    answer = imported(ebbtide, write(tmp_path, "b.json", guidellm_report(benchmark)), target=target)
    assert any(line.startswith(said) for line in answer["warnings"]), answer["warnings"]
    assert answer["open_loop"] == (not said.startswith("closed"))


def test_a_failed_request_is_a_late_one(ebbtide: Command, target: Path, tmp_path: Path) -> None:
    """1 % failed: P95 of all is P95.96 of the answered, and of those the file has P99 (1.5 × P95) next."""
    for p95, holds in ((1.3, True), (1.4, False)):
        one = guidellm_benchmark("poisson", 4.0, p95, rate=4.0, errored=6)
        path = write(tmp_path, "benchmarks.json", guidellm_report(one))
        answer = imported(ebbtide, path, target=target, code=0 if holds else 3)
        assert (answer["limited_by"] is None) == holds
    one = guidellm_benchmark("poisson", 4.0, 0.1, rate=4.0, errored=20)
    answer = imported(ebbtide, write(tmp_path, "b.json", guidellm_report(one)), target=target, code=3)
    assert answer["limited_by"] == "errors"


def test_no_load_that_holds_writes_nothing(ebbtide: Command, target: Path, tmp_path: Path) -> None:
    path = write(tmp_path, "b.json", guidellm_report(guidellm_benchmark("poisson", 4.0, 9.0, rate=4.0)))
    told = ebbtide("claims", "import", path, "--target", target, "-o", tmp_path / "claim.yaml")
    assert (told.code, told.out.splitlines()[0]) == (3, "no load holds the targets: 4 requests a second miss latency")
    assert not (tmp_path / "claim.yaml").exists()


@pytest.mark.parametrize(
    ("config", "loop", "said"),
    [
        ({"phases": phase("poisson", rate=8.0)}, True, None),
        ({"phases": phase("concurrency", concurrency=32)}, False, "closed loop (concurrency, at most 32 in flight)"),
        ({"phases": phase("gamma", rate=8.0)}, True, "arrivals were gamma, not Poisson"),
        ({"phases": phase("poisson", rate=8.0, concurrency=64)}, True, "at most 64 requests in flight: "),
        ({"loadgen": {"concurrency": 4, "request_count": 100}}, False, "closed loop (concurrency, at most 4 in"),
        ({"loadgen": {"request_rate": 8.0, "arrival_pattern": "constant"}}, True, "arrivals were constant"),
        ({}, True, "aiperf's file does not say whether the loop was open"),
    ],
)
def test_aiperf_s_summary(
    ebbtide: Command, target: Path, tmp_path: Path, config: dict[str, Any], loop: bool, said: str | None
) -> None:
    files = [
        write(tmp_path, f"{place}/profile_export_aiperf.json", aiperf_summary(p95, rate_rps=rate, **config))
        for place, rate, p95 in (("low", 7.9, 1500.0), ("high", 12.0, 2100.0))
    ]
    answer, claim = imported(ebbtide, *files, target=target), claimed(target)
    assert (answer["tool"], answer["open_loop"]) == ("aiperf", loop)
    assert (claim["sustained"]["lowRps"], claim["sustained"]["limitedBy"]) == (3.95, "latency")
    assert claim["settings"] == {"modelRevision": "m-small"}
    told = [line for line in answer["warnings"] if not line.startswith(("aiperf's latencies", "no interval"))]
    assert [line[: len(said or "")] for line in told] == ([said] if said else [])


def test_aiperf_s_records(ebbtide: Command, target: Path, tmp_path: Path) -> None:
    target.write_text(TARGET.replace(", {firstToken: 500ms}", ""), encoding="utf-8")
    rng = np.random.default_rng(4)
    starts_s = np.cumsum(rng.exponential(0.1, 1000))
    lines = [aiperf_record(start, 1000.0 + number) for number, start in enumerate(starts_s.tolist())]
    lines[0]["metadata"]["benchmark_phase"] = "warmup"
    lines[1] |= {"metrics": {}, "error": {"code": 503, "message": "overloaded"}}
    answer = imported(ebbtide, write(tmp_path, "profile_export.jsonl", *lines), target=target)
    assert (answer["levels"][0]["answered"], answer["levels"][0]["failed"]) == (998, 1)
    assert answer["levels"][0]["rate_rps"] == pytest.approx(998 / (starts_s[-1] - starts_s[1]))
    assert any(line.startswith("aiperf's file does not say") for line in answer["warnings"])


def test_inference_perf_s_stages(ebbtide: Command, target: Path, tmp_path: Path) -> None:
    files = [
        write(tmp_path, f"stage_{number}_lifecycle_metrics.json", inference_perf_stage(rate, p95, failed=failed))
        for number, (rate, p95, failed) in enumerate([(2.0, 0.5, 0), (4.0, 1.2, 1), (8.0, 1.9, 60)])
    ]
    answer = imported(ebbtide, *files, target=target)
    assert (answer["tool"], answer["limited_by"], answer["replica_low_rps"]) == ("inference-perf", "latency", 1.96)
    assert any(line.startswith("no config.yaml beside inference-perf's file") for line in answer["warnings"])
    (tmp_path / "config.yaml").write_text(INFERENCE_PERF_CONFIG, encoding="utf-8")
    answer = imported(ebbtide, *files, target=target)
    assert answer["open_loop"] is True
    assert any("its arrivals are not Poisson" in line for line in answer["warnings"])
    assert any(line.startswith("at most 400 requests in flight") for line in answer["warnings"])
    assert claimed(target)["settings"] == {"modelRevision": "m-small"}


def test_inference_perf_that_sent_late_or_in_a_closed_loop(ebbtide: Command, target: Path, tmp_path: Path) -> None:
    late = inference_perf_stage(4.0, 1.0, schedule_delay={"mean": 0.1, "p99": 0.3})
    answer = imported(ebbtide, write(tmp_path, "stage_0.json", late), target=target)
    assert any(line.startswith("inference-perf sent late: P99 300 ms") for line in answer["warnings"])
    closed = inference_perf_stage(4.0, 1.0, concurrency=16)
    answer = imported(ebbtide, write(tmp_path, "stage_0.json", closed), target=target)
    assert any(line.startswith("closed loop (concurrent, at most 16 in flight)") for line in answer["warnings"])


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.json", "{", "is no JSON"),
        ("a.json", '{"results": []}', "is no result file that is known; known are guidellm's benchmarks.json"),
        ("a.jsonl", '{"prompt": "x"}', "is no result file that is known"),
        ("a.yaml", "{", "is no YAML"),
        ("a.json", json.dumps(guidellm_report(guidellm_benchmark("poisson", 0.0, 1.0))), "without a rate"),
    ],
)
def test_files_that_are_none(
    ebbtide: Command, target: Path, tmp_path: Path, name: str, content: str, said: str
) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    told = ebbtide("claims", "import", tmp_path / name, "--target", target, "-o", tmp_path / "claim.yaml")
    assert told.code == 2
    assert said in told.err
    assert not (tmp_path / "claim.yaml").exists()


def test_what_a_file_does_not_hold_is_asked_for_in_vain(ebbtide: Command, target: Path, tmp_path: Path) -> None:
    summary = inference_perf_stage(4.0, 1.0)
    del summary["load_summary"]["requested_rate"]
    told = ebbtide("claims", "import", write(tmp_path, "summary.json", summary), "--target", target)
    assert (told.code, "is over all stages, whatever their rates" in told.err) == (2, True)
    stage = write(tmp_path, "stage.json", inference_perf_stage(4.0, 1.0))
    told = ebbtide("claims", "import", stage, write(tmp_path, "a.json", aiperf_summary(1.0)), "--target", target)
    assert (told.code, "of several tools: aiperf, inference-perf" in told.err) == (2, True)
    target.write_text(TARGET.replace("latency: 2s", "latency: 2s, percentile: 0.999"), encoding="utf-8")
    told = ebbtide("claims", "import", stage, "--target", target)
    assert (told.code, "holds no percentile as high as the target's for latency (P99.9" in told.err) == (2, True)
    target.write_text(TARGET.replace("firstToken: 500ms", "longestGap: 500ms"), encoding="utf-8")
    told = ebbtide("claims", "import", stage, "--target", target)
    assert (told.code, "holds nothing of it for longestGap" in told.err) == (2, True)


def test_a_load_that_holds_above_one_that_does_not(ebbtide: Command, target: Path, tmp_path: Path) -> None:
    loads = ((2.0, 0.5), (4.0, 2.5), (8.0, 1.0))
    report = guidellm_report(*(guidellm_benchmark("poisson", rate, p95, rate=rate) for rate, p95 in loads))
    answer = imported(ebbtide, write(tmp_path, "b.json", report), target=target)
    assert (answer["replica_low_rps"], answer["replica_high_rps"]) == (1.0, 2.0)
    assert "a higher load held after a lower one had not; the claim keeps to the lower" in answer["warnings"]
