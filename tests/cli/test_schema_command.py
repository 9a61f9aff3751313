"""`ebbtide schema`: JSON with and without the flag, whatever the case of the kind."""

from __future__ import annotations

import json


def test_the_schema_is_json_with_and_without_the_flag(ebbtide) -> None:
    plain, flagged = ebbtide("schema", "fleet"), ebbtide("schema", "Fleet", "--json")
    assert plain.code == flagged.code == 0
    assert plain.out == flagged.out
    assert "workloads" in json.dumps(json.loads(plain.out))


def test_an_unknown_kind_is_named(ebbtide) -> None:
    told = ebbtide("schema", "fleets")
    assert (told.code, told.out) == (2, "")
    assert "Fleet" in told.err
