"""What runs beside what was measured: the same however it is written, and never the same by saying nothing."""

from __future__ import annotations

import pytest

from ebbtide.capacity.running import Running, compared
from ebbtide.fleet.fingerprint import Fingerprint

CLAIM = Fingerprint(
    gpu_model="NVIDIA H100 80GB HBM3",
    gpus=4,
    driver="550.54.15",
    image_digest="sha256:1",
    model_revision="r2",
    flags='--tp 2 --name "a b" --enforce-eager',
)
SAME = Running(
    pods=3,
    image_digests=("sha256:1",),
    arguments=(("serve", "m", "--enforce-eager", "--name=a b", "--tp", "2"),),
    gpus=(2,),
    gpu_models=("NVIDIA-H100-80GB-HBM3",),
    drivers=("550.54.15",),
)


def test_the_same_written_otherwise() -> None:
    found = compared(CLAIM, SAME, replicas=2)
    assert [one.field for one in found] == ["gpu_model", "gpus", "driver", "image_digest", "flags"]
    assert all(one.same for one in found)


@pytest.mark.parametrize(
    ("field", "running", "said"),
    [
        ("gpu_model", {"gpu_models": ("NVIDIA-H100-80GB-HBM3", "NVIDIA-A100-SXM4-80GB")}, "A100"),
        ("gpus", {"gpus": (4,)}, "4"),
        ("driver", {"drivers": ("535.1",)}, "535.1"),
        ("image_digest", {"image_digests": ("sha256:1", "sha256:2")}, "sha256:1, sha256:2"),
        ("flags", {"arguments": (("--enforce-eager", "--name", "a b", "--tp", "4"),)}, "--tp 4"),
        ("flags", {"arguments": (("--name", "a b", "--tp", "2"),)}, "(no --enforce-eager)"),
        ("flags", {"arguments": ((*SAME.arguments[0], "--quantization", "fp8"),)}, "--quantization fp8"),
        ("flags", {"arguments": (SAME.arguments[0], ("--tp", "1"))}, "--tp 1"),
    ],
)
def test_what_differs_is_said(field: str, running: dict[str, object], said: str) -> None:
    values = {name: getattr(SAME, name) for name in Running.__dataclass_fields__} | running
    found = {one.field: one for one in compared(CLAIM, Running(**values), replicas=2)}
    assert not found.pop(field).same
    assert all(one.same for one in found.values())
    (other,) = [one for one in compared(CLAIM, Running(**values), replicas=2) if one.field == field]
    assert other.running is not None
    assert said in other.running


def test_what_nothing_says_is_not_observed_and_not_the_same() -> None:
    for one in compared(CLAIM, Running(pods=1), replicas=2):
        assert (one.running, one.same) == (None, False)


def test_what_the_server_said_of_itself_is_no_flag() -> None:
    assert compared(Fingerprint(flags="version=0.6 block_size=16"), SAME, replicas=1) == ()
