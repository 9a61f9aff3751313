"""A Fleet that says every field which the controller reads."""

from __future__ import annotations

import pytest

LIVE = "{name: live, promql: 'sum by (service) (rate(requests_total[5m]))'}"
FULL = f"""\
apiVersion: ebbtide.dev/v1alpha1
kind: Fleet
metadata: {{name: two-models}}
spec:
  mode: Active
  timeZone: America/New_York
  demand:
  - {{name: log, file: requests.csv.gz}}
  - {LIVE}
  liveDemand: live
  pools:
  - name: h100
    gpusPerNode: 8
    nodes: 6
    nodeSelector: {{ebbtide.dev/pool: h, gpu: h100}}
    gpuResource: amd.com/gpu
    provider:
      clusterapi:
        production: {{namespace: capi, name: prod-h100, cluster: research}}
        research: {{namespace: capi, name: lab-h100}}
  clusters: {{production: {{context: "arn:aws:eks:x:1:cluster/prod"}}, research: {{inCluster: true}}}}
  workloads:
  - name: chat
    gpusPerReplica: 1
    service: {{time: 6s}}
    targets: [{{wait: 2s}}]
    scaleTargetRef: {{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, namespace: serving, name: c}}
    drain: {{grace: 2m, path: /drain}}
  - {{name: agents, gpusPerReplica: 2, service: {{time: 8s}}, targets: [{{wait: 5s}}]}}
  research:
    minimumRunTime: 15m
    quota:
      of: {{kind: ClusterQueue, name: research}}
      flavors: [{{pool: h100, reserved: fixed, ephemeral: tide}}]
"""


@pytest.fixture
def full_fleet() -> str:
    """The document's text."""
    return FULL
