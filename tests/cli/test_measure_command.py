"""`ebbtide measure` from end to end: the claim, its evidence, a run that is stopped and goes on, bad input.

Where a rate must come out right the service is in virtual time: no machine is too busy for that.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
from ruamel.yaml import YAML
from scipy.optimize import brentq

from ebbtide.adapters.documents.claim import read_claim
from ebbtide.adapters.simserver.slots import Shape
from ebbtide.workflows import measure as workflow
from ebbtide.workflows.measure_steps import Progress
from loopback import hostile_app, running, simulated
from loopback.virtual import ROOM, SERVERS, VirtualCrew

TARGET = """\
apiVersion: ebbtide.dev/v1alpha1
kind: Target
metadata: {{name: model}}
spec:
  endpoint: {{url: "{url}", timeout: 30s{more}}}
  requests: {{prompts: prompts.jsonl}}
  targets: [{{latency: 10m}}]
  errorBudget: 0.01
  quality: {{exact: true, required: 0.9, idle: 20}}
  search: {{start: {start}, requests: {requests}, tolerance: {tolerance}, shortestStep: 1s}}
"""
Command = Callable[..., object]


def target(folder: Path, url: str, *, more: str = "", start: float = 3.0, requests: int = 40_000) -> Path:
    """A Target and its prompts in the folder."""
    lines = [json.dumps({"prompt": f"say {number}", "expected": f"say {number}"}) for number in range(50)]
    (folder / "prompts.jsonl").write_text("\n".join(lines), encoding="utf-8")
    path = folder / "target.yaml"
    path.write_text(TARGET.format(url=url, more=more, start=start, requests=requests, tolerance=0.08), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A quick model."""
    with simulated(Shape(slots=16, queue=4, time_s=0.01, tokens=2)) as found:
        yield found


@pytest.fixture
def url(address: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The model's address, for a measurement whose steps are virtual."""
    monkeypatch.setattr(workflow, "Crew", VirtualCrew)
    return f"{address}/v1/chat/completions"


def true_rps() -> float:
    """Where a hundredth is shed."""

    def shed(rate_rps: float) -> float:
        steps = rate_rps / np.minimum(np.arange(1, SERVERS + ROOM + 1), SERVERS)
        weights = np.cumprod(np.concatenate(([1.0], steps)))
        return float(weights[-1] / weights.sum())

    return float(brentq(lambda rate_rps: shed(rate_rps) - 0.01, 5.0, 20.0))


def claimed(path: Path) -> dict[str, dict[str, object]]:
    return YAML(typ="safe").load(path.read_text(encoding="utf-8"))["spec"]


def test_a_claim_with_its_evidence(ebbtide: Command, url: str, tmp_path: Path) -> None:
    told = ebbtide("measure", target(tmp_path, url), "-o", tmp_path / "claim.yaml", "--json")
    assert told.code == 0, told.err
    answer, claim = json.loads(told.out), claimed(tmp_path / "claim.yaml")
    assert answer["low_rps"] <= true_rps() <= answer["high_rps"]
    assert claim["sustained"]["limitedBy"] == answer["limited_by"] == "errors"
    assert claim["sustained"]["lowRps"] <= answer["low_rps"]
    assert claim["quality"]["check"] == "exact"
    assert claim["quality"]["low"] > 0.99
    assert answer["against_idle"] == "not worse"
    assert claim["settings"]["modelRevision"] == "ebbtide-simulated"
    evidence = tmp_path / claim["evidence"]["file"]
    assert claim["evidence"]["sha256"] == f"sha256:{hashlib.sha256(evidence.read_bytes()).hexdigest()}"
    rows = pyarrow.parquet.read_table(evidence)
    assert rows.num_rows == claim["method"]["requests"] == answer["requests"]
    assert not (tmp_path / "claim.steps").exists()
    assert read_claim(tmp_path / "claim.yaml").claim.sustained.low_rps == claim["sustained"]["lowRps"]


def test_a_claim_is_a_replica_s(ebbtide: Command, url: str, tmp_path: Path) -> None:
    path = target(tmp_path, url)
    more = "  replicas: 4\n  live: {rate: 'sum(rate(requests_total[10m]))', within: [share]}\n"
    path.write_text(path.read_text(encoding="utf-8") + more, encoding="utf-8")
    told = ebbtide("measure", path, "-o", tmp_path / "claim.yaml", "--json")
    answer, claim = json.loads(told.out), claimed(tmp_path / "claim.yaml")
    assert answer["low_rps"] <= true_rps() <= answer["high_rps"]
    assert (answer["replicas"], claim["sustained"]["replicas"]) == (4, 4)
    assert answer["replica_low_rps"] == pytest.approx(answer["low_rps"] / 4)
    assert claim["sustained"]["lowRps"] == pytest.approx(answer["low_rps"] / 4, rel=1e-3)
    assert claim["sustained"]["highRps"] == pytest.approx(answer["high_rps"] / 4, rel=1e-3)
    assert claim["live"]["rate"] == "sum(rate(requests_total[10m]))"
    page = (tmp_path / "claim.html").read_text(encoding="utf-8")
    assert "4, measured together" in page
    assert "a second and replica" in page


def test_stopped_at_any_step_it_goes_on_to_the_same_claim(url: str, tmp_path: Path) -> None:
    whole = workflow.measure(target(tmp_path, url), tmp_path / "whole.yaml")
    stopped = 0

    def stop(progress: Progress) -> None:
        nonlocal stopped
        if progress.over and progress.number in (3, 9) and progress.number > stopped:
            stopped = progress.number
            raise KeyboardInterrupt

    for resume in (False, True):
        with pytest.raises(KeyboardInterrupt):
            workflow.measure(tmp_path / "target.yaml", tmp_path / "parts.yaml", resume=resume, watch=stop)
        assert len(list((tmp_path / "parts.steps").glob("*.parquet"))) == stopped
    parts = workflow.measure(tmp_path / "target.yaml", tmp_path / "parts.yaml", resume=True)
    assert parts.found == whole.found
    assert parts.claim is not None
    assert whole.claim is not None
    assert parts.claim.sustained == whole.claim.sustained
    assert not (tmp_path / "parts.steps").exists()


def test_a_run_of_another_target_is_not_gone_on_with(ebbtide: Command, url: str, tmp_path: Path) -> None:
    def stop(progress: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        workflow.measure(target(tmp_path, url), tmp_path / "claim.yaml", watch=stop)
    told = ebbtide("measure", target(tmp_path, url, start=4.0), "-o", tmp_path / "claim.yaml", "--resume")
    assert (told.code, "was begun with another target.yaml" in told.err) == (2, True)
    told = ebbtide("measure", tmp_path / "target.yaml", "-o", tmp_path / "none.yaml", "--resume")
    assert (told.code, "there is no run to go on with" in told.err) == (2, True)


def test_a_rate_that_can_t_be_offered_is_no_number(
    ebbtide: Command, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(VirtualCrew, "lateness_s", 7.0)  # a hundredth of the target is 6 s
    told = ebbtide("measure", target(tmp_path, url), "-o", tmp_path / "claim.yaml")
    assert told.code == 4
    assert "3 requests a second can't be offered from here: P99 lateness 7000.0 ms, at most 6e+03 ms" in told.err
    assert not (tmp_path / "claim.yaml").exists()
    assert len(list((tmp_path / "claim.steps").glob("*.parquet"))) == 3
    monkeypatch.setattr(VirtualCrew, "lateness_s", 0.0)
    told = ebbtide("measure", tmp_path / "target.yaml", "-o", tmp_path / "claim.yaml", "--resume", "--json")
    assert (told.code, json.loads(told.out)["void_steps"]) == (0, 3)


def test_over_real_loopback(ebbtide: Command, address: str, tmp_path: Path) -> None:
    """Whatever this machine's day is like: an answer, and every request of it accounted for."""
    path = target(tmp_path, f"{address}/v1/chat/completions", start=200.0, requests=3_000)
    told = ebbtide("measure", path, "-o", tmp_path / "claim.yaml", "--processes", "2", "--json")
    assert told.code in (0, 3), told.err
    answer = json.loads(told.out)
    assert pyarrow.parquet.read_table(tmp_path / "claim.parquet").num_rows == answer["requests"] <= 3_000
    assert (tmp_path / "claim.yaml").exists() == (answer["limited_by"] is not None)


@pytest.mark.parametrize(
    ("path", "more", "kind", "code"),
    [
        ("unauthorized", ", token: {env: MEASURE_TOKEN}", "unauthorized", 4),
        ("moved", "", "redirected", 4),
        ("page", "", "bad_answer", 4),
        ("unfinished", ", stream: true", "bad_answer", 4),
    ],
)
def test_endpoints_that_answer_wrongly(
    ebbtide: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, more: str, kind: str, code: int
) -> None:
    monkeypatch.setenv("MEASURE_TOKEN", "not-to-be-seen")
    with running(hostile_app()) as hostile:
        told = ebbtide("measure", target(tmp_path, f"{hostile}/{path}", more=more), "-o", tmp_path / "c.yaml", "--json")
    error = json.loads(told.out)["error"]
    assert (told.code, error["kind"]) == (code, kind)
    assert "not-to-be-seen" not in told.out + told.err
    assert sorted(one.name for one in tmp_path.iterdir()) == ["prompts.jsonl", "target.yaml"]


def test_an_empty_prompt_file(ebbtide: Command, url: str, tmp_path: Path) -> None:
    path = target(tmp_path, url)
    (tmp_path / "prompts.jsonl").write_text("\n")
    told = ebbtide("measure", path)
    assert (told.code, told.err.splitlines()[-1].split(": ", 1)[1]) == (
        2,
        'is empty; write one request a line, such as {"prompt": "…", "expected": "…"}',
    )


def test_a_checker_that_hangs_is_ended(ebbtide: Command, url: str, tmp_path: Path) -> None:
    path = target(tmp_path, url)
    hangs = 'checker: {command: ["sleep", "3600"], timeout: 50ms}'
    path.write_text(path.read_text().replace("exact: true", hangs))
    told = ebbtide("measure", path, "-o", tmp_path / "claim.yaml")
    assert told.code == 2
    assert "the checker broke on the first answers: no verdict within 0.05 s" in told.err


def test_an_endpoint_without_tls(ebbtide: Command, address: str, tmp_path: Path) -> None:
    told = ebbtide("measure", target(tmp_path, address.replace("http:", "https:") + "/v1/chat/completions"))
    assert told.code == 4
    assert told.err.endswith("it speaks no TLS: write http:// in endpoint.url\n")


def test_a_checker_that_crashes_is_not_the_service_s_fault(ebbtide: Command, url: str, tmp_path: Path) -> None:
    path = target(tmp_path, url)
    path.write_text(path.read_text().replace("exact: true", 'checker: {command: ["false-command"]}'))
    told = ebbtide("measure", path, "-o", tmp_path / "claim.yaml")
    assert told.code == 2
    assert "the checker false-command can't be run" in told.err
    path.write_text(path.read_text().replace('["false-command"]', '["sh", "-c", "exit 9"]'))
    told = ebbtide("measure", path, "-o", tmp_path / "claim.yaml")
    assert told.code == 2
    assert "the checker broke on the first answers: exit code 9" in told.err


@pytest.mark.parametrize(
    ("wrong", "right", "said"),
    [
        ("firstToken: 1s", "latency: 10m", "is seen in streams alone, and endpoint.stream is false"),
        ("latency: 1s, firstToken: 1s", "latency: 10m", "has both latency and firstToken"),
        ("latency: 1s, percentile: 95", "latency: 10m", "write 0.95 for P95"),
        ("exact: true, regex: x", "exact: true", "has both exact and regex"),
        ('headers: {Authorization: "Bearer x"}, timeout: 30s', "timeout: 30s", "carries a credential"),
        ("api: embeddings, stream: true, timeout: 30s", "timeout: 30s", "embeddings do not stream"),
        ("api: chat, tokn: {env: A}, timeout: 30s", "timeout: 30s", "nearest: token"),
    ],
)
def test_documents_that_are_wrong(ebbtide: Command, tmp_path: Path, wrong: str, right: str, said: str) -> None:
    path = target(tmp_path, "http://127.0.0.1:9/v1/chat/completions")
    path.write_text(path.read_text().replace(right, wrong))
    told = ebbtide("measure", path)
    assert told.code == 2
    assert said in told.err


def test_an_address_with_a_password(ebbtide: Command, tmp_path: Path) -> None:
    told = ebbtide("measure", target(tmp_path, "http://me:secret@127.0.0.1:9/v1/chat/completions"))
    assert (told.code, "holds a password" in told.err, "secret" in told.err) == (2, True, False)


def test_quality_that_no_rate_holds_is_said_before_any_load(
    ebbtide: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workflow, "Crew", VirtualCrew)
    with simulated(Shape(slots=4, time_s=0.001, wrong_base=1.0)) as address:
        told = ebbtide("measure", target(tmp_path, f"{address}/v1/chat/completions"), "-o", tmp_path / "claim.yaml")
    assert told.code == 3
    assert told.out == "no rate holds it: at idle 0 of 20 answers were right (0.0%), 90.0% are required\n"
    assert not (tmp_path / "claim.yaml").exists()


def test_what_a_run_costs_is_told_before_it(ebbtide: Command, url: str, tmp_path: Path) -> None:
    told = ebbtide("measure", target(tmp_path, url), "-o", tmp_path / "claim.yaml")
    lines = told.err.splitlines()
    assert "requests, at most 40,000; " in next(line for line in lines if line.startswith("likely "))
    steps = [line for line in lines if line.startswith("step ")]
    assert steps[0].startswith("step 1: 3/s, 800 requests: passes (")
    assert "min left" in steps[0]
    assert steps[-1].endswith("; resolved")
