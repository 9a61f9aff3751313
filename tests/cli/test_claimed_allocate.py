"""`ebbtide allocate` on claims: what is planned, what is refused and why, what is accepted all the same."""

from __future__ import annotations

import json
import re
from math import ceil, isnan
from pathlib import Path

import pytest
from ruamel.yaml import YAML
from scipy.optimize import brentq

from ebbtide.adapters.documents.claim import read_claim
from ebbtide.adapters.documents.schedule import read_schedule
from ebbtide.fleet.workload import TargetKind
from ebbtide.queueing.station import Station

EXAMPLE = Path(__file__).parents[2] / "examples" / "claim"

CLAIM = """\
apiVersion: ebbtide.dev/v1alpha1
kind: CapacityClaim
metadata: {name: chat}
spec:
  measuredAt: "2026-09-10T14:00:00+08:00"
  validUntil: "2126-10-10T14:00:00+08:00"
  sustained: {lowRps: 0.5, highRps: 0.55, confidence: 0.95, limitedBy: firstToken, replicas: 2}
  targets: [{latency: 9s}, {firstToken: 1500ms, percentile: 0.99}]
  hardware: {gpuModel: H100-SXM-80GB, gpus: 2}
  settings: {imageDigest: "sha256:4be1", modelRevision: r2}
  warnings: [a proxy buffers]
"""
EXPECTS = "    expects: {gpuModel: H100-SXM-80GB, modelRevision: r2}\n"


@pytest.fixture
def claimed(fleet_file: Path) -> Path:
    """The small fleet, chat planned on a claim."""
    (fleet_file.parent / "claims").mkdir()
    (fleet_file.parent / "claims" / "chat.yaml").write_text(CLAIM, encoding="utf-8")
    edit(
        fleet_file,
        "  - {name: chat, gpusPerReplica: 1, service: {time: 6s, concurrency: 4}, targets: [{wait: 2s}]}\n",
        "  - name: chat\n    gpusPerReplica: 1\n    service: {claim: chat}\n    targets: [{wait: 2s}]\n" + EXPECTS,
    )
    return fleet_file


def edit(path: Path, old: str, new: str) -> Path:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    return path


def claim_file(fleet_file: Path) -> Path:
    return fleet_file.parent / "claims" / "chat.yaml"


def test_a_plan_on_a_claim(ebbtide, claimed: Path) -> None:
    told = ebbtide("allocate", claimed, "-o", claimed.parent)
    assert told.code == 0, told.err
    assert "chat: by claim chat a replica holds 0.5 rps (measured 2026-09-10, until 2126-10-10)" in told.err
    assert "chat: of claim chat: a proxy buffers" in told.err
    assert "but of chat" in told.out
    schedule, explanation = read_schedule(claimed.parent / "schedule.yaml")
    column = schedule.workloads[0]
    assert explanation is not None
    for replicas, holds, reason in zip(column.replicas, column.holds_rps, explanation.reasons["chat"], strict=True):
        assert holds == pytest.approx(0.5 * replicas)
        assert 0.5 * (replicas - 1) < reason.peak_rps <= 0.5 * replicas + 5e-3
        assert isnan(reason.given.wait_s)
        assert reason.refused is not None
        assert isnan(reason.refused.wait_s)
    (record,) = explanation.provenance.claims
    assert (record.workload, record.claim, record.low_rps, record.accepted) == ("chat", "chat", 0.5, ())
    assert explanation.facts["chat"].replica_holds_rps == 0.5
    page = (claimed.parent / "report.html").read_text(encoding="utf-8")
    assert "a replica holds 0.5 requests a second by claim chat" in page
    assert record.sha256 in page
    assert not re.search(r"\bnan\b", page.split("<body>")[1], re.IGNORECASE)


def test_explain_says_what_is_held_and_that_waits_are_not_observed(ebbtide, claimed: Path) -> None:
    assert ebbtide("allocate", claimed, "-o", claimed.parent).code == 0
    told = ebbtide("explain", claimed.parent / "schedule.yaml", "--workload", "chat", "--window", "09:00")
    lines = told.out.splitlines()
    assert any(line.startswith("  last given") and "holds" in line and "meets the target" in line for line in lines)
    assert "  claim       a replica holds 0.500 rps; waits are not observed" in lines
    assert "floor" not in told.out
    told = ebbtide("explain", claimed.parent / "schedule.yaml", "--workload", "chat", "--window", "09:00", "--json")
    answer = json.loads(told.out)
    assert (answer["replica_holds_rps"], answer["target_share"], answer["last_given"]["wait_s"]) == (0.5, None, None)
    assert answer["last_given"]["meets_target"] is True
    assert ebbtide("diff", claimed.parent / "schedule.yaml", claimed.parent / "schedule.yaml", "--exit-code").code == 0


def test_all_on_claims_no_wait_is_the_worst(ebbtide, claimed: Path) -> None:
    edit(
        claimed,
        "service: {time: 8s, concurrency: 4}, targets: [{latency: 40s}]",
        "service: {claim: claims/chat.yaml}, targets: [{latency: 40s}]",
    )
    edit(claim_file(claimed), ", gpus: 2", "")
    told = ebbtide("allocate", claimed, "-o", claimed.parent)
    assert told.code == 0, told.err
    assert "WORST: not observed" in told.out
    assert all(line.endswith(" -") for line in told.out.splitlines()[1:4])


REFUSED = {
    ("2126-10-10", "2026-10-10"): ("validUntil: is 2026-10-10T14:00:00+08:00, and it is 20", "claim_expired"),
    ("H100-SXM", "A100-SXM"): (
        'hardware.gpuModel: is the text "A100-SXM-80GB", but workloads[chat].expects.gpuModel',
        "claim_differs",
    ),
    (", modelRevision: r2", ""): ("settings.modelRevision: is not known, but", "claim_differs"),
    ("gpus: 2", "gpus: 4"): (
        "hardware.gpus: is 4 for 2 replicas, but workloads[chat].gpusPerReplica is 1",
        "claim_differs",
    ),
}


@pytest.mark.parametrize("change", REFUSED)
def test_a_claim_that_is_no_ground_is_refused_unless_accepted(ebbtide, claimed: Path, change: tuple[str, str]) -> None:
    edit(claim_file(claimed), *change)
    told = ebbtide("allocate", claimed, "-o", claimed.parent, "--json")
    said, kind = REFUSED[change]
    assert told.code == 2
    error = json.loads(told.out)["error"]
    assert error["kind"] == kind
    assert (error["file"], error["line"]) == (str(claim_file(claimed)), line_of(claim_file(claimed), error["field"]))
    text = ebbtide("allocate", claimed, "-o", claimed.parent).err
    assert said in text
    assert "--accept-claim chat" in text
    assert not (claimed.parent / "schedule.yaml").exists()
    told = ebbtide("allocate", claimed, "-o", claimed.parent, "--accept-claim", "chat")
    assert told.code == 0, told.err
    assert "chat: planned on claim chat all the same: " in told.err
    _, explanation = read_schedule(claimed.parent / "schedule.yaml")
    assert explanation is not None
    (record,) = explanation.provenance.claims
    assert len(record.accepted) == 1
    assert any("all the same" in line for line in explanation.warnings)


def line_of(path: Path, field: str) -> int:
    word = field.rsplit(".", 1)[0] if field.count(".") else field
    lines = path.read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, start=1) if line.strip().startswith(f"{word}:"))


def test_everything_that_is_wrong_is_said_at_once(ebbtide, claimed: Path) -> None:
    edit(claim_file(claimed), "2126-10-10", "2026-10-10")
    edit(claim_file(claimed), "H100-SXM", "A100-SXM")
    told = ebbtide("allocate", claimed, "-o", claimed.parent)
    assert told.code == 2
    assert all(word in told.err for word in ("validUntil", "hardware.gpuModel"))


@pytest.mark.parametrize(
    ("targets", "covered"),
    [
        ("{wait: 2s, percentile: 0.99}", True),  # a request waits no longer than until its first token
        ("{wait: 9s}", True),
        ("{wait: 1400ms, percentile: 0.99}", False),
        ("{firstToken: 1500ms, percentile: 0.99}", True),
        ("{firstToken: 9s}", True),  # no later than the whole answer
        ("{firstToken: 1s}", False),
        ("{latency: 10s, percentile: 0.9}", True),
        ("{latency: 8s}", False),
        ("{latency: 9s, percentile: 0.96}", False),
    ],
)
def test_targets_are_held_against_the_claims_own(ebbtide, claimed: Path, targets: str, covered: bool) -> None:
    edit(claimed, "targets: [{wait: 2s}]", f"targets: [{targets}]")
    told = ebbtide("allocate", claimed, "-o", claimed.parent, "--accept-claim", "chat")
    assert told.code == (0 if covered else 2), told.err
    if not covered:
        assert "holds P95 latency 9s, P99 firstToken 1.5s" in told.err
        assert "workloads[chat].targets[0]." in told.err


def test_names_that_are_none(ebbtide, claimed: Path) -> None:
    told = ebbtide("allocate", claimed, "--accept-claim", "chet")
    assert (told.code, "nearest: chat" in told.err) == (2, True)
    edit(claimed, "{claim: chat}", "{claim: chta}")
    told = ebbtide("allocate", claimed)
    assert told.code == 2
    assert "fleet.yaml:12: workloads[chat].service.claim: is chta, and there is no file" in told.err


WRONG_FLEETS = {
    "service: {claim: chat, time: 6s}": "has both time and claim",
    "service: {time: 6s}\n    targets: [{firstToken: 2s}]": "firstToken: is what no service time tells",
    "service: {claim: chat, concurrency: 4}": "service.concurrency: is given, but a claim",
    "service: {claim: chat, scv: 2}": "service.scv: is given, but a claim",
    "service: {time: 6s}": "expects: is what a claim must match, but service names no claim",
    "waitingCostUsdPerRequestHour: 1\n    service: {claim: chat}": "a claim does not say how long requests wait",
}


@pytest.mark.parametrize("given", WRONG_FLEETS)
def test_what_a_claim_leaves_no_room_for(ebbtide, claimed: Path, given: str) -> None:
    if "targets" in given:
        edit(claimed, "    targets: [{wait: 2s}]\n" + EXPECTS, "")
    edit(claimed, "service: {claim: chat}", given)
    told = ebbtide("validate", claimed)
    assert told.code == 2
    assert WRONG_FLEETS[given] in told.err


def test_a_claim_that_is_wrong_is_said_at_its_own_line(ebbtide, claimed: Path) -> None:
    edit(claim_file(claimed), "lowRps: 0.5", "lowRp: 0.5")
    told = ebbtide("allocate", claimed)
    assert told.code == 2
    assert "chat.yaml:7: sustained.lowRp: unknown field; nearest: lowRps" in told.err


def test_a_backtest_needs_times(ebbtide, claimed: Path) -> None:
    told = ebbtide("backtest", claimed)
    assert told.code == 2
    assert "workloads[chat].service.claim: says what a replica holds, not how long a request takes" in told.err


def test_the_fewest_nodes_on_a_claim(ebbtide, claimed: Path) -> None:
    told = ebbtide("allocate", claimed, "--least-gpus", "--json")
    assert told.code == 0, told.err
    assert json.loads(told.out)["pools"][0]["unreachable"] == []


def test_a_schedule_on_claims_is_plain_yaml(ebbtide, claimed: Path) -> None:
    assert ebbtide("allocate", claimed, "-o", claimed.parent).code == 0
    plain = YAML(typ="safe").load((claimed.parent / "schedule.yaml").read_text(encoding="utf-8"))
    chat = plain["explanation"]["workloads"][0]
    assert set(chat["wait"]) == set(chat["refusedWait"]) == set(chat["targetShare"]) == {None}
    assert ebbtide("validate", claimed.parent / "schedule.yaml").code == 0


def test_the_example(ebbtide, tmp_path: Path) -> None:
    """A plan on a claim from end to end, and that claim against the closed form that it names."""

    def attained(rate_rps: float) -> float:
        station = Station(replicas=1, slots=8, arrival_rate_rps=rate_rps, service_time_s=0.2)
        return float(station.attainment(TargetKind.LATENCY, 0.7)) - 0.95

    claim = read_claim(EXAMPLE / "claims" / "chat.yaml").claim
    true_rps = brentq(attained, 1.0, 39.9)
    assert true_rps - 0.01 < claim.sustained.low_rps <= true_rps
    told = ebbtide("allocate", EXAMPLE / "fleet.yaml", "-o", tmp_path)
    assert told.code == 0, told.err
    assert "chat: of claim chat: computed, not measured" in told.err
    schedule, explanation = read_schedule(tmp_path / "schedule.yaml")
    assert explanation is not None
    chat = schedule.workloads[0]
    assert chat.replicas[-1] > 3 * chat.replicas[0]
    for replicas, reason in zip(chat.replicas, explanation.reasons["chat"], strict=True):
        assert replicas >= reason.least_replicas == ceil(reason.peak_rps / claim.sustained.low_rps * (1.0 - 5e-3))
    told = ebbtide("explain", tmp_path / "schedule.yaml", "--workload", "chat", "--window", "21:00")
    assert "target P95 latency 700ms" in " ".join(told.out.split())
    told = ebbtide("claims", "check", "--fleet", EXAMPLE / "fleet.yaml", "--offline")
    assert told.code == 0, told.out
