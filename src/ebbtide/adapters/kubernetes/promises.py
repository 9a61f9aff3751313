"""What research work says of itself in annotations: duration, preemptible or not, when it was last saved (§7.1)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from ebbtide.adapters.kubernetes.objects import instant_s
from ebbtide.units import parse_duration_s

PREFIX = "ebbtide.dev/"
P90_OF_EXPECTED = 1.3  # where only the expected duration is given: the default of BatchJobs


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """The annotations of a pod template, of its Workload and of its pods, in that order: later ones win.

    What is not readable counts as not said.
    """

    said: Mapping[str, str]

    @property
    def preemptible(self) -> bool:
        """Work on the ephemeral flavor has opted in to being ended, unless it says otherwise (§7.2)."""
        return self.said.get(PREFIX + "preemptible", "true").lower() != "false"

    def ends_s(self, started_s: float | None) -> float | None:
        """When it ends with nine chances in ten; None: no estimate.

        >>> Promise(said={"ebbtide.dev/duration": "1h"}).ends_s(0.0)
        4680.0
        """
        if started_s is None:
            return None
        late_s = self._duration_s("duration-p90")
        if late_s is None:
            expected_s = self._duration_s("duration")
            late_s = None if expected_s is None else expected_s * P90_OF_EXPECTED
        return None if late_s is None else started_s + late_s

    def checkpointed_s(self, started_s: float, at_s: float) -> float:
        """When it was last saved: as it says, else by its interval, else at its start.

        >>> Promise(said={"ebbtide.dev/checkpoint-interval": "10m"}).checkpointed_s(0.0, 1500.0)
        1200.0
        """
        told_s = instant_s(self.said.get(PREFIX + "checkpointed-at"))
        if told_s is not None:
            return max(min(told_s, at_s), started_s)
        every_s = self._duration_s("checkpoint-interval")
        if not every_s:
            return started_s
        return started_s + math.floor(max(at_s - started_s, 0.0) / every_s) * every_s

    def _duration_s(self, name: str) -> float | None:
        text = self.said.get(PREFIX + name)
        if text is None:
            return None
        try:
            return parse_duration_s(text)
        except ValueError:
            return None
