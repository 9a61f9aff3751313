"""A claim's document: what was not observed is left out, never a NaN and never the end of a long measurement."""

from __future__ import annotations

from whenever import OffsetDateTime, hours

from ebbtide.capacity.claim import CapacityClaim, Effort, Fingerprint, Mix, Sustained
from ebbtide.capacity.limits import Limit, LimitKind
from ebbtide.workflows.measure_write import claim_output


def test_what_was_not_observed_is_left_out(tmp_path):
    claim = CapacityClaim(
        name="chat",
        sustained=Sustained(low_rps=9.6, high_rps=9.9, confidence=0.95, limited_by="latency"),
        limits=(
            Limit(kind=LimitKind.LATENCY, bad_share=0.05, bound_s=1.0),
            Limit(kind=LimitKind.ERRORS, bad_share=0.01),
        ),
        fingerprint=Fingerprint(gpu_model="H100-SXM-80GB", gpus=1),
        mix=Mix(source="prompts.jsonl"),
        effort=Effort(
            tolerance=0.05,
            measured_s=3600.0,
            requests=36_000,
            effective=float("nan"),
            longest_disturbance_s=float("inf"),
            lateness_p99_s=float("nan"),
        ),
        measured_at=OffsetDateTime(2026, 9, 10, 14, offset=hours(8)),
        valid_until=OffsetDateTime(2026, 9, 11, 14, offset=hours(8)),
    )
    text = claim_output(tmp_path / "claim.yaml", claim).content.decode()
    assert "requests: 36000" in text
    assert not {"effectiveSample", "longestDisturbance", "latenessP99"} & set(text.replace(":", " ").split())
    assert "nan" not in text.lower()
