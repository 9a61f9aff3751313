"""The calculator's answer as text and as JSON."""

from __future__ import annotations

import json
import math

import pytest

from ebbtide.cli.render_size import size_json, size_text
from ebbtide.queueing.calculator import size

A_STATION = """\
servers                         10
offered load, erlangs         9.50
utilisation                95.00 %
probability of waiting       0.826
mean wait                   1.65 s
P50 wait                    1.00 s
P90 wait                    4.22 s
P95 wait                    5.61 s
P99 wait                    8.83 s
served, requests a second     9.50
give up                     0.00 %
"""


def test_a_station_as_text() -> None:
    assert size_text(size(arrival_rate_rps=9.5, service_time_s=1.0, servers=10)) == A_STATION


def test_the_least_servers_stand_between_their_neighbours() -> None:
    answer = size(arrival_rate_rps=9.5, service_time_s=1.0, target_wait_s=0.5, target_percentile=0.95)
    lines = size_text(answer).splitlines()
    assert lines[0].split() == ["one", "fewer", "least", "one", "more"]
    assert lines[1].split() == ["servers", "12", "13", "14"]
    assert lines[-1].startswith("within the target")
    assert all(len(line) <= 80 for line in lines)


def test_one_server_has_no_neighbour_below() -> None:
    answer = size(arrival_rate_rps=0.01, service_time_s=0.1, target_wait_s=5.0, target_percentile=0.5)
    assert size_text(answer).splitlines()[0].split() == ["least", "one", "more"]
    assert "one_fewer" not in size_json(answer)


def test_json_names_what_the_calculator_promises() -> None:
    found = size_json(size(arrival_rate_rps=9.5, service_time_s=1.0, servers=10))
    assert list(found["wait_percentiles_s"]) == ["0.5", "0.9", "0.95", "0.99"]
    for key in ("servers", "offered_load", "utilisation", "probability_of_waiting", "mean_wait_s"):
        assert isinstance(found[key], int | float)
    # M/M/10 at 9.5 erlangs: Erlang C over c − a, by hand.
    assert found["mean_wait_s"] == pytest.approx(found["probability_of_waiting"] / 0.5, rel=1e-12)


def test_json_of_an_unstable_station_is_valid_json() -> None:
    found = size_json(size(arrival_rate_rps=11.0, service_time_s=1.0, servers=10))
    assert found["is_stable"] is False
    assert found["mean_wait_s"] == "unstable"
    assert set(found["wait_percentiles_s"].values()) == {"unstable"}
    json.dumps(found, allow_nan=False)
    assert "unstable" in size_text(size(arrival_rate_rps=11.0, service_time_s=1.0, servers=10))


def test_a_probability_beyond_doubles_is_told_by_its_logarithm() -> None:
    answer = size(arrival_rate_rps=100.0, service_time_s=1.0, servers=1000)
    found = size_json(answer)
    log = found["log_probability_of_waiting"]
    assert isinstance(log, float)
    assert log < math.log(1e-300)
    assert f"10^{log / math.log(10):,.0f}" in size_text(answer)


def test_target_json_carries_both_neighbours() -> None:
    found = size_json(size(arrival_rate_rps=9.5, service_time_s=1.0, target_wait_s=0.5, target_percentile=0.95))
    fewer, more = found["one_fewer"], found["one_more"]
    assert isinstance(fewer, dict)
    assert isinstance(more, dict)
    assert fewer["attainment"] < 0.95 <= found["attainment"] < more["attainment"]
