"""What people may edit by hand at home: wishes that cannot be read are said, a noticeboard is written anew."""

from __future__ import annotations

import pytest

from ebbtide.adapters.kubernetes.clients import Cluster
from ebbtide.adapters.kubernetes.noticeboard import Noticeboard
from ebbtide.adapters.kubernetes.wishes import MapWishes, PeoplesWishes
from ebbtide.errors import DocumentError
from ebbtide.fleet.operations import Override, OverrideKind, Pause

MAPS = "/api/v1/namespaces/ebb/configmaps"


def config_map(name: str, **data: str) -> dict[str, object]:
    return {"metadata": {"name": name, "namespace": "ebb", "resourceVersion": "7"}, "data": data}


def test_wishes_come_back_as_they_were_written(script, cluster: Cluster):
    wishes = PeoplesWishes(
        overrides=(
            Override(name="quiet", kind=OverrideKind.HOLD, until_s=4_000_000_000.0, reason="launch"),
            Override(name="mine", kind=OverrideKind.RELEASE, until_s=4_000_000_001.0, reason="mine", what="chat"),
        ),
        pause=Pause(reason="launch"),
    )
    script.say("POST", MAPS, {"metadata": {}})
    MapWishes(cluster, "ebb", "w").write(wishes)
    (body,) = script.bodies
    script.say("GET", f"{MAPS}/w", config_map("w", **body["data"]))
    assert MapWishes(cluster, "ebb", "w").read() == wishes


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"overrides": 3}',
        '{"overrides": [{"name": "x", "until": "2099-01-01T00:00:00Z", "reason": "r", "tea": 1}]}',
        '{"overrides": [{"name": "x", "until": "tea", "reason": "r", "hold": {}}]}',
    ],
)
def test_damaged_wishes_are_the_users_error_and_say_where(script, cluster: Cluster, text):
    script.say("GET", f"{MAPS}/w", config_map("w", **{"wishes.json": text}))
    with pytest.raises(DocumentError, match="ConfigMap ebb/w"):
        MapWishes(cluster, "ebb", "w").read()


def test_a_wish_that_could_not_be_read_back_is_not_written(script, cluster: Cluster):
    bad = Override(name="Two Words", kind=OverrideKind.HOLD, until_s=4_000_000_000.0, reason="launch")
    with pytest.raises(DocumentError):
        MapWishes(cluster, "ebb", "w").write(PeoplesWishes(overrides=(bad,)))
    assert not script.asked


def test_a_damaged_noticeboard_is_written_anew(script, cluster: Cluster):
    script.say(
        "GET", f"{MAPS}/b", config_map("b", **{"standing.json": "{", "history.jsonl": '{"at": 1}\nnonsense\n[]'})
    )
    script.say("PUT", f"{MAPS}/b", {"metadata": {}})
    board = Noticeboard(cluster, "ebb", "b")
    assert board.read() == (None, [{"at": 1}])
    board.show({"phase": "Holding"}, [{"at": 2}])
    board.show({"phase": "Holding"}, [])
    (body,) = script.bodies  # nothing is new: written once
    assert body["data"]["history.jsonl"] == '{"at": 1}\n{"at": 2}'
