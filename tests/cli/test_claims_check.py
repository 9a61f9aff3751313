"""`ebbtide claims check`: date, evidence, the Fleet, the cluster, and what Prometheus saw; 1 where a check says no."""

from __future__ import annotations

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from ebbtide.capacity.running import Running
from ebbtide.workflows import claims_check

CLAIM = """\
apiVersion: ebbtide.dev/v1alpha1
kind: CapacityClaim
metadata: {name: chat}
spec:
  measuredAt: "2026-09-10T14:00:00+08:00"
  validUntil: "2126-10-10T14:00:00+08:00"
  sustained: {lowRps: 5, highRps: 5.5, confidence: 0.95}
  targets: [{latency: 9s}]
  hardware: {gpuModel: NVIDIA H100 80GB HBM3, gpus: 1}
  settings: {imageDigest: "sha256:1", flags: "--tp 1"}
  evidence: {file: chat.parquet, sha256: "sha256:DIGEST"}
  live: {rate: the_rate, replicas: the_replicas, within: [the_share]}
"""
RAW = b"all the requests"


@pytest.fixture(autouse=True)
def _no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("EBBTIDE_PROMETHEUS_URL", "EBBTIDE_CONTEXT_PRODUCTION"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def claim(fleet_file: Path) -> Path:
    """A claim with its evidence, which the Fleet beside it names."""
    folder = fleet_file.parent / "claims"
    folder.mkdir()
    (folder / "chat.parquet").write_bytes(RAW)
    path = folder / "chat.yaml"
    path.write_text(CLAIM.replace("DIGEST", hashlib.sha256(RAW).hexdigest()), encoding="utf-8")
    text = fleet_file.read_text(encoding="utf-8")
    old = "service: {time: 6s, concurrency: 4}, targets: [{wait: 2s}]"
    assert old in text
    new = "service: {claim: chat}, targets: [{wait: 9s}], expects: {imageDigest: 'sha256:1'}"
    fleet_file.write_text(text.replace(old, new), encoding="utf-8")
    return path


@pytest.fixture
def prometheus(monkeypatch: pytest.MonkeyPatch):
    """A server whose series are functions of time."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            given = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
            start, end, step = (int(given[name]) for name in ("start", "end", "step"))
            here.starts.append(start)
            values = [[at, str(here.series[given["query"]](at))] for at in range(start, end + 1, step)]
            data = {"resultType": "matrix", "result": [{"metric": {}, "values": values}]}
            body = json.dumps({"status": "success", "data": data}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    here = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    here.series = {"the_rate": lambda at: 9.0, "the_replicas": lambda at: 2, "the_share": lambda at: 0.99}
    here.starts = []
    thread = threading.Thread(target=here.serve_forever)
    thread.start()
    monkeypatch.setenv("EBBTIDE_PROMETHEUS_URL", f"http://127.0.0.1:{here.server_port}")
    yield here
    here.shutdown()
    here.server_close()
    thread.join()


def answers(told: object) -> dict[str, list[str]]:
    """Answers by what they are about, of the only claim."""
    (one,) = json.loads(told.out)["claims"]
    found: dict[str, list[str]] = {}
    for check in one["checks"]:
        found.setdefault(check["about"], []).append(check["answer"])
    return found


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_a_claim_that_stands(ebbtide, claim: Path) -> None:
    told = ebbtide("claims", "check", claim, "--json")
    assert told.code == 0, told.err
    assert answers(told) == {"valid": ["ok"], "evidence": ["ok"], "live": ["unknown"]}
    told = ebbtide("claims", "check", claim)
    assert "chat holds 5 rps a replica, measured 2026-09-10" in " ".join(told.out.split())
    assert "no server is set (EBBTIDE_PROMETHEUS_URL)" in " ".join(told.out.split())
    assert max(len(line) for line in told.out.splitlines()) <= max(80, len(str(claim)) + 30)


def test_one_that_expired_and_one_whose_evidence_changed(ebbtide, claim: Path) -> None:
    edit(claim, "2126-10-10", "2026-10-10")
    told = ebbtide("claims", "check", claim, "--offline", "--json")
    assert (told.code, answers(told)) == (1, {"valid": ["no"], "evidence": ["ok"]})
    (claim.parent / "chat.parquet").write_bytes(RAW + b"!")
    assert answers(ebbtide("claims", "check", claim, "--offline", "--json"))["evidence"] == ["no"]
    (claim.parent / "chat.parquet").unlink()
    assert answers(ebbtide("claims", "check", claim, "--offline", "--json"))["evidence"] == ["unknown"]


def test_against_the_fleet(ebbtide, claim: Path, fleet_file: Path) -> None:
    told = ebbtide("claims", "check", "--fleet", fleet_file, "--offline", "--json")
    assert (told.code, answers(told)["expects"]) == (0, ["ok"])
    edit(fleet_file, "'sha256:1'", "'sha256:2'")
    told = ebbtide("claims", "check", claim, "--fleet", fleet_file, "--offline")
    assert told.code == 1
    said = " ".join(told.out.split())
    assert 'chat: settings.imageDigest is the text "sha256:1", but workloads[chat].expects.imageDigest' in said


RUNNING = Running(
    pods=2,
    image_digests=("sha256:1",),
    arguments=(("serve", "--tp", "1"),),
    gpus=(1,),
    gpu_models=("NVIDIA-H100-80GB-HBM3",),
)


@pytest.mark.parametrize(
    ("running", "code", "expected", "said"),
    [
        (RUNNING, 0, ["ok"] * 4, "settings.flags is as claimed"),
        (Running(pods=2), 0, ["unknown"] * 4, "hardware.gpuModel is not seen in Deployment default/chat"),
        (Running(pods=0), 0, ["unknown"], "Deployment default/chat has no running pod"),
        (None, 0, ["unknown"], "Deployment default/chat is not there"),
        (
            Running(pods=2, image_digests=("sha256:1", "sha256:7")),
            1,
            ["unknown", "unknown", "no", "unknown"],
            "settings.imageDigest is sha256:1, sha256:7; claimed: sha256:1",
        ),
    ],
)
def test_against_what_runs(
    ebbtide, claim: Path, fleet_file: Path, monkeypatch, tmp_path, running, code, expected, said
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        json.dumps(
            {
                "clusters": [{"name": "prod", "cluster": {"server": "https://127.0.0.1:1"}}],
                "contexts": [{"name": "prod", "context": {"cluster": "prod", "user": "me"}}],
                "users": [{"name": "me", "user": {}}],
            }
        ),
        encoding="utf-8",
    )
    monkeypatch.setattr(claims_check, "look_at", lambda cluster, workload, pool: running)
    words = ("claims", "check", claim, "--fleet", fleet_file, "--context", "prod", "--kubeconfig", kubeconfig)
    told = ebbtide(*words, "--json")
    assert (told.code, answers(told)["running"]) == (code, expected), told.out
    assert said in " ".join(ebbtide(*words).out.split())


def test_a_cluster_that_does_not_answer_ends_it(ebbtide, claim: Path, fleet_file: Path, tmp_path: Path) -> None:
    told = ebbtide("claims", "check", claim, "--fleet", fleet_file, "--context", "nowhere", "--kubeconfig", tmp_path)
    assert (told.code, told.out) == (4, "")


def test_against_what_users_saw(ebbtide, claim: Path, prometheus) -> None:
    told = ebbtide("claims", "check", claim, "--days", 5, "--json")
    assert (told.code, answers(told)["live"]) == (0, ["ok"])
    prometheus.series["the_share"] = lambda at: 0.9
    told = ebbtide("claims", "check", claim, "--days", 5)
    assert told.code == 1
    said = " ".join(told.out.split())
    assert "P95 latency 9s: 90 % within it at up to 5 rps a replica" in said
    assert "days below target" in said
    assert "measure again" in said
    prometheus.series["the_rate"] = lambda at: 11.0  # above what the claim holds: nothing is held against it
    told = ebbtide("claims", "check", claim, "--days", 5)
    assert told.code == 0
    assert "no two intervals in a row at up to 5 rps a replica" in " ".join(told.out.split())


def test_options_go_before_the_claims_own_queries(ebbtide, claim: Path, prometheus) -> None:
    prometheus.series |= {"other_rate": lambda at: 4.0, "other_share": lambda at: 0.5, "ten": lambda at: 10}
    words = ("claims", "check", claim, "--days", 5, "--json")
    assert answers(ebbtide(*words, "--within", "other_share"))["live"] == ["no"]
    assert answers(ebbtide(*words, "--rate", "other_rate"))["live"] == ["ok"]
    prometheus.series["the_rate"] = lambda at: 45.0
    assert answers(ebbtide(*words))["live"] == ["unknown"]
    assert answers(ebbtide(*words, "--replicas", "ten"))["live"] == ["ok"]
    told = ebbtide(*words, "--within", "the_share", "--within", "the_share")
    assert (told.code, "--within is given 2 times, the claim has 1 targets" in told.out) == (2, True)


def test_nothing_from_before_the_measurement_counts(ebbtide, claim: Path, prometheus) -> None:
    ebbtide("claims", "check", claim, "--days", 300)
    measured_s = 1_789_020_000
    assert measured_s < min(prometheus.starts) <= measured_s + 1200


def test_a_claim_without_queries_says_so(ebbtide, claim: Path, prometheus) -> None:
    edit(claim, "  live: {rate: the_rate, replicas: the_replicas, within: [the_share]}\n", "")
    told = ebbtide("claims", "check", claim)
    assert (told.code, "the claim has no live queries" in " ".join(told.out.split())) == (0, True)
    told = ebbtide("claims", "check", claim, "--rate", "the_rate")
    assert (told.code, "--within is needed as well" in told.err) == (2, True)


def test_wrong_questions(ebbtide, claim: Path, fleet_file: Path, tmp_path: Path) -> None:
    told = ebbtide("claims", "check")
    assert (told.code, "no claim is named" in told.err) == (2, True)
    other = tmp_path / "other.yaml"
    other.write_text(claim.read_text(encoding="utf-8"), encoding="utf-8")
    told = ebbtide("claims", "check", other, "--fleet", fleet_file)
    assert (told.code, "no workload of" in told.err) == (2, True)
    told = ebbtide("claims", "check", claim, "--context", "prod")
    assert (told.code, "give --fleet" in told.err) == (2, True)
    told = ebbtide("claims", "check", tmp_path / "none.yaml")
    assert (told.code, "no such file" in told.err) == (2, True)
    edit(claim, "within: [the_share]", "within: [the_share, the_share]")
    told = ebbtide("claims", "check", claim)
    assert (told.code, "live.within: has 2 queries, targets 1" in told.err) == (2, True)
