"""Slurm's exports: GPUs in TRES and GRES, times in all its forms, durations from finished runs, what is left out."""

from __future__ import annotations

import pytest
from whenever import ZonedDateTime

from ebbtide.adapters.slurm import elapsed_s, is_slurm, waiting_jobs
from ebbtide.errors import InputError

ZONE = "Europe/Berlin"
AT_S = float(ZonedDateTime(2026, 9, 7, 18, tz=ZONE).timestamp())

SACCT = """\
JobID|JobName|State|Elapsed|Timelimit|ReqTRES|NNodes|Eligible|Deadline
90|train|COMPLETED|02:00:00|1-00:00:00|billing=16,cpu=16,gres/gpu=8,node=1|1|2026-09-01T00:00:00|Unknown
90.batch|batch|COMPLETED|02:00:00||||2026-09-01T00:00:00|
91|train|COMPLETED|04:00:00|1-00:00:00|gres/gpu=8|1|2026-09-01T00:00:00|Unknown
92|train|CANCELLED by 1000|00:00:07|1-00:00:00|gres/gpu=8|1|2026-09-01T00:00:00|Unknown
93|train|PENDING|00:00:00|1-00:00:00|cpu=32,gres/gpu:h100=16,node=2|2|2026-09-07T20:00:00|2026-09-08T08:00:00
94|Eval Suite|PENDING|00:00:00|13:00:00|gres/gpu=1|1|Unknown|2026-09-01T08:00:00
95|cpu-only|PENDING|00:00:00|01:00:00|cpu=4|1|Unknown|Unknown
96|endless|PENDING|00:00:00|UNLIMITED|gres/gpu=1|1|Unknown|Unknown
97|busy|RUNNING|00:30:00|01:00:00|gres/gpu=1|1|Unknown|Unknown
"""


def test_waiting_jobs_of_sacct() -> None:
    (train, suite), remarks = waiting_jobs(SACCT, file="sacct.txt", at_s=AT_S, time_zone=ZONE)
    assert (train.name, train.pods, train.gpus_per_pod) == ("train-93", 2, 8)
    assert train.duration.expected_s == 3 * 3600  # the median of its two finished runs
    assert (train.earliest_start_s, train.deadline_s) == (AT_S + 2 * 3600, AT_S + 14 * 3600)
    assert (suite.name, suite.gpus) == ("eval-suite-94", 1)
    assert (suite.duration.p90_s, suite.duration.expected_s) == (13 * 3600, 10 * 3600)
    assert suite.deadline_s is None  # it is over
    assert len(remarks) == 2


def test_squeue_with_gres_per_node() -> None:
    text = "JOBID|NAME|ST|TIME_LIMIT|NODES|TRES_PER_NODE\n7|a|PD|2:00:00|2|gres/gpu:8\n8|b|R|1:00|1|gres/gpu:1\n"
    (one,), _ = waiting_jobs(text, file="squeue.txt", at_s=AT_S, time_zone=ZONE)
    assert (one.name, one.pods, one.gpus_per_pod, one.duration.p90_s) == ("a-7", 2, 8, 7200)


def test_times() -> None:
    texts = ("00:00:07", "1-00:00:00", "15:00", "2-12:30", "1:02:03.456")
    assert [elapsed_s(text) for text in texts] == [7, 86_400, 900, 217_800, 3723]


def test_what_is_none() -> None:
    assert not is_slurm("apiVersion: ebbtide.dev/v1alpha1\n")
    assert not is_slurm("a|b\n")
    with pytest.raises(InputError, match="the head line 2") as caught:
        waiting_jobs("JobID|State\n1|PENDING|x|y\n", file="s.txt", at_s=AT_S, time_zone=ZONE)
    assert caught.value.place.line == 2
    with pytest.raises(InputError, match="no time"):
        waiting_jobs("JobID|State|Timelimit|ReqTRES\n1|PENDING|soon|gres/gpu=1\n", file="s", at_s=AT_S, time_zone=ZONE)


def test_a_byte_order_mark_a_requeued_job_and_an_array() -> None:
    head = "\ufeffJobID|JobName|State|Timelimit|ReqTRES|NNodes\r\n"
    assert is_slurm(head)
    text = head + "6|a|REQUEUED|1:00:00|gres/gpu=1|1\r\n6|a|PENDING|2:00:00|gres/gpu=1|1\r\n"
    text += "6|a|PENDING|3:00:00|gres/gpu=1|1\r\n5_[1-10%2]|a|PENDING|1:00:00|gres/gpu=1|1\r\n"
    (one, array), remarks = waiting_jobs(text, file="s.txt", at_s=AT_S, time_zone=ZONE)
    assert (one.name, one.duration.p90_s) == ("a-6", 3 * 3600)
    assert array.name == "a-5-1-10-2"
    assert len(remarks) == 1
    assert "1 waiting arrays count as one task each" in remarks[0]
