"""The page as text: nothing outside is named, nothing of the input is markup, every plan has a page."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from ebbtide.adapters.report.figures import percent_pair, target_share
from ebbtide.adapters.report.inputs import ReportInput
from ebbtide.adapters.report.render import render_report
from ebbtide.fleet.pool import Pool

HOSTILE = """<script>alert("x")</script>'"><img src=x onerror=alert(1)>&amp;{{ 7*7 }}"""


class Page(HTMLParser):
    """Collects the elements that matter."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.tags)


def hostile(plan: ReportInput) -> ReportInput:
    """The plan with hostile text wherever a user's or a file's words go."""
    record = replace(plan.explanation.provenance.demand[0], source=HOSTILE, start=HOSTILE, sha256=HOSTILE)
    provenance = replace(plan.explanation.provenance, demand=(record,), margin=HOSTILE, forecaster=HOSTILE)
    explanation = replace(plan.explanation, provenance=provenance, warnings=(HOSTILE,))
    names = {w.name: w.name + HOSTILE for w in plan.fleet.workloads}
    return replace(
        plan,
        fleet=replace(
            plan.fleet,
            name=HOSTILE,
            pools=tuple(replace(p, name=HOSTILE) for p in plan.fleet.pools),
            workloads=tuple(replace(w, name=names[w.name], pool=HOSTILE) for w in plan.fleet.workloads),
        ),
        schedule=replace(
            plan.schedule,
            name=HOSTILE,
            pools=tuple(replace(p, name=HOSTILE) for p in plan.schedule.pools),
            workloads=tuple(replace(w, name=names[w.name]) for w in plan.schedule.workloads),
        ),
        explanation=replace(explanation, reasons={names[n]: why for n, why in plan.explanation.reasons.items()}),
        profiles=tuple(replace(p, workload=names[p.workload]) for p in plan.profiles),
    )


def test_hostile_words_stay_words(day_plan: ReportInput) -> None:
    clean, page = Page(render_report(day_plan)), Page(render_report(hostile(day_plan)))
    assert page.count("script") == clean.count("script") == 1
    assert page.count("img") == 0
    assert not any(key.startswith("on") for _, attributes in page.tags for key in attributes)
    assert "{{ 7*7 }}" in render_report(hostile(day_plan))


def test_no_address_is_named(day_plan: ReportInput) -> None:
    text = render_report(day_plan)
    assert not re.search(r"(?i)(https?:)?//[a-z0-9]", re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL))
    for tag, attributes in Page(text).tags:
        assert tag not in {"iframe", "object", "embed", "base", "img"}
        for key in ("src", "href", "action", "data", "xlink:href"):
            assert attributes.get(key) in (None, "data:,"), (tag, attributes)
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)


def test_the_same_plan_makes_the_same_bytes(day_plan: ReportInput) -> None:
    assert render_report(day_plan) == render_report(day_plan)


def test_every_head_of_a_table_says_what_it_heads(week_plan: ReportInput) -> None:
    tags = Page(render_report(week_plan)).tags
    assert all(attributes.get("scope") for tag, attributes in tags if tag == "th")
    assert sum(tag == "svg" and attributes.get("class", "") != "defs" for tag, attributes in tags) > 60
    assert sum(tag == "title" for tag, _ in tags) > sum(tag == "desc" for tag, _ in tags) == 6


def test_headline_names_the_days_figures(day_plan: ReportInput) -> None:
    text = render_report(day_plan)
    for words in ("3,877 of 7,680 GPU-hours a day", "3,656", "147", "2,341", "32 nodes", "0.3\N{NO-BREAK SPACE}%"):
        assert words in text
    assert "every target holds in every window" in text


def test_shortages_are_said_in_full(short_plan: ReportInput) -> None:
    text = render_report(short_plan).replace("\N{NO-BREAK SPACE}", " ")
    assert "09:00–13:00: 4 GPUs short; 71 % within target, asked 95 %; the wait is 7.2s" in text
    assert "12 GPUs short; 94.97 % within target, asked 95.00 %; the queue grows" in text
    assert ">101%<" in text
    assert ">unstable<" in text
    assert "0.95 rests on the margin" in text


def test_a_shortage_that_no_gpus_end_names_no_number(short_plan: ReportInput) -> None:
    shortages = tuple(replace(one, missing_gpus=None) for one in short_plan.explanation.shortages)
    plan = replace(short_plan, explanation=replace(short_plan.explanation, shortages=shortages))
    text = render_report(plan).replace("\N{NO-BREAK SPACE}", " ")
    assert "09:00–13:00: no number of GPUs is enough; 71 % within target, asked 95 %" in text
    assert "GPUs short" not in text


def test_many_shortages_unfold(short_plan: ReportInput) -> None:
    many = replace(short_plan.explanation, shortages=short_plan.explanation.shortages * 20)
    assert "and 28 more" in render_report(replace(short_plan, explanation=many))


def test_no_research_no_demand_no_moves(day_plan: ReportInput) -> None:
    pool = Pool(name="h100", gpus_per_node=8, nodes=25)
    whole = (25,) * 6
    column = replace(day_plan.schedule.pools[0], production_nodes=whole, ephemeral_nodes=(0,) * 6, lead_s=(0.0,) * 6)
    hours = replace(day_plan.explanation.gpu_hours_per_day, production=4800.0, moving=0.0, research=0.0)
    plan = replace(
        day_plan,
        fleet=replace(day_plan.fleet, pools=(pool,)),
        schedule=replace(day_plan.schedule, pools=(column,)),
        explanation=replace(day_plan.explanation, gpu_hours_per_day=hours),
        profiles=(),
    )
    text = render_report(plan)
    assert "Production needs the whole fleet: all 4,800 GPU-hours a day" in text
    assert "moving, serving nobody" not in text
    assert "no demand seen" in text


@pytest.mark.parametrize("share", [1.0000001, 1.004, 1.1, 17.0, 1e9])
def test_a_miss_never_reads_as_met(share: float) -> None:
    text = target_share(share)
    assert text.startswith(">") or int(text.removesuffix("%")) > 100


def test_a_share_just_below_another_reads_below() -> None:
    assert percent_pair(0.94999, 0.95) == ("94.999 %", "95.000 %")
