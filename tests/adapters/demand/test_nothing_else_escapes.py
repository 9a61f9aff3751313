"""Damaged files end in an answer or in one of our errors, never in another; and every kind is documented."""

from __future__ import annotations

import contextlib
import re
import tempfile
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

import ebbtide.adapters.demand as room
from ebbtide.adapters.demand.read import read_trace
from ebbtide.adapters.demand.source import DemandSource
from ebbtide.errors import DemandError

REPOSITORY = Path(__file__).parents[3]
HEADERS = (
    "time,rate",
    "time,model,rate,cv",
    "t_s,service,requests",
    "time,model,duration_s",
    "t_s",
    "ts,count_5min",
    "",
)
CELLS = (
    "2026-09-01T00:00Z", "2026-09-01 00:10", "2026-03-08 02:30", "2026-11-01 01:30", "0", "600", "1200", "-1", "1e300",
    "-1e300", "1.7e308", "1e-320", "nan", "1788220800", "1788221400000", "a", "total", "a/total", "", '"', '""', "'",
    "\0", "é", "9999-12-31", "0001-01-01", "1e18", "9223372036854775808", "1_0", "0x10", "١", ";", "\t", "\r", "\n",
)  # fmt: skip


@st.composite
def texts(draw: st.DrawFn) -> bytes:
    rows = draw(st.lists(st.lists(st.sampled_from(CELLS), min_size=1, max_size=4), max_size=8))
    text = "\n".join([draw(st.sampled_from(HEADERS)), *(",".join(row) for row in rows)])
    return text.encode(draw(st.sampled_from(["utf-8", "utf-8", "utf-8", "utf-16", "latin-1"])), errors="replace")


def read(content: bytes, zone: str | None, origin: str | None, interval_s: int | None) -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(DemandError):
        (Path(folder) / "log.csv").write_bytes(content)
        read_trace(
            DemandSource(
                name="log", file="log.csv", folder=Path(folder), time_zone=zone, origin=origin, interval_s=interval_s
            )
        )


@settings(max_examples=60)
@given(
    content=texts(),
    zone=st.sampled_from([None, "America/New_York", "Asia/Kolkata"]),
    origin=st.sampled_from([None, "2026-09-01T00:00Z"]),
    interval_s=st.sampled_from([None, 600, 7200]),
)
@example(
    content=b"time,rate\n2026-09-01T00:00Z,1.7e308\n2026-09-01T00:10Z,1.7e308\n",
    zone=None,
    origin=None,
    interval_s=7200,
)
@example(content=b"t_s\n1e300\n", zone=None, origin="2026-09-01T00:00Z", interval_s=None)
@example(content=b"t_s,rate\n-1e10,1\n1e10,1\n", zone=None, origin="2026-09-01T00:00Z", interval_s=None)
def test_text_of_any_kind(content: bytes, zone: str | None, origin: str | None, interval_s: int | None) -> None:
    read(content, zone, origin, interval_s)


@settings(max_examples=40)
@given(
    content=st.binary(max_size=300),
    start=st.sampled_from([b"", b"PAR1", b"\x1f\x8b\x08\0", b"time,rate\n", b"\xef\xbb\xbft_s\n"]),
)
def test_bytes_of_any_kind(content: bytes, start: bytes) -> None:
    read(start + content, "UTC", "2026-09-01T00:00Z", None)


def test_every_kind_of_error_is_documented() -> None:
    page = (REPOSITORY / "docs" / "reference" / "demand-files.md").read_text(encoding="utf-8")
    sources = [path.read_text(encoding="utf-8") for path in Path(str(room.__file__)).parent.glob("*.py")]
    kinds = {kind for text in sources for kind in re.findall(r"kind=\"(\w+)\"", text)}
    kinds |= {kind for text in sources for kind in re.findall(r"(?:TimeError|complain)\([^\"]*\"(\w+)\"", text)}
    assert len(kinds) > 30
    assert {kind for kind in kinds if f"`{kind}`" not in page} <= {"no_source", "stable"}  # the latter is of a sort
