"""Values over the cycle as SVG path data, in the plot's pixels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ebbtide.adapters.report.wave import Wave
from ebbtide.fleet.demand import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A box ``left … right`` × ``top … bottom`` in pixels that shows ``0 … cycle`` minutes × ``0 … most`` GPUs."""

    left: float
    right: float
    top: float
    bottom: float
    cycle: float
    most: float

    def x(self, minute: float) -> float:
        """Pixel of a minute."""
        return round(self.left + (self.right - self.left) * minute / self.cycle, 2)

    def y(self, gpus: float) -> float:
        """Pixel of a number of GPUs, never outside the box."""
        share = min(max(gpus / self.most, 0.0), 1.0)
        return round(self.bottom - (self.bottom - self.top) * share, 2)

    @property
    def gpu_hours_per_px2(self) -> float:
        """What a square pixel is worth, in GPU-hours a cycle."""
        hours = self.cycle / 60.0 / (self.right - self.left)
        return hours * self.most / (self.bottom - self.top)


def steps_line(plot: Plot, edges: Floats, values: Floats) -> str:
    """A line of steps.

    >>> box = Plot(left=0, right=10, top=0, bottom=10, cycle=10, most=10)
    >>> steps_line(box, np.array([0.0, 5, 10]), np.array([2.0, 4]))
    'M0.0,8.0H5.0V6.0H10.0'
    """
    parts = [f"M{plot.x(edges[0])},{plot.y(values[0])}"]
    for index, value in enumerate(values):
        if index and value != values[index - 1]:
            parts.append(f"V{plot.y(value)}")
        if index + 1 == len(values) or values[index + 1] != value:
            parts.append(f"H{plot.x(edges[index + 1])}")
    return "".join(parts)


def steps_area(plot: Plot, edges: Floats, low: Floats, high: Floats) -> str:
    """The area between two lines of steps, a closed box per run of intervals where ``high`` lies above ``low``.

    >>> box = Plot(left=0, right=10, top=0, bottom=10, cycle=10, most=10)
    >>> steps_area(box, np.array([0.0, 5, 10]), np.array([0.0, 4]), np.array([2.0, 4]))
    'M0.0,10.0V8.0H5.0V10.0H0.0Z'
    """
    full = high > low
    boxes = []
    for first, last in _runs(full):
        up = "".join(f"V{plot.y(high[i])}H{plot.x(edges[i + 1])}" for i in range(first, last))
        back = "".join(f"V{plot.y(low[i])}H{plot.x(edges[i])}" for i in range(last - 1, first - 1, -1))
        boxes.append(f"M{plot.x(edges[first])},{plot.y(low[first])}{up}{back}Z")
    return "".join(boxes)


def wave_line(plot: Plot, wave: Wave, values: Floats) -> str:
    """A line through the bins' middles, closed over the cycle's end; broken where nothing was seen."""
    closed = _closed(values)
    points = _points(plot, wave, closed)
    return "".join("M" + "L".join(points[a:b]) for a, b in _runs(~np.isnan(closed)) if b - a > 1)


def wave_area(plot: Plot, wave: Wave, low: Floats, high: Floats) -> str:
    """The area between two such lines."""
    closed_low, closed_high = _closed(low), _closed(high)
    up, back = _points(plot, wave, closed_high), _points(plot, wave, closed_low)
    runs = _runs(~np.isnan(closed_low + closed_high))
    return "".join("M" + "L".join(up[a:b] + back[a:b][::-1]) + "Z" for a, b in runs)


def _closed(values: Floats) -> Floats:
    """The bins' values, and at both ends of the cycle what lies between its last and its first bin."""
    join = (values[0] + values[-1]) / 2
    return np.concatenate([[join], values, [join]])


def _points(plot: Plot, wave: Wave, closed: Floats) -> list[str]:
    """Places of ``closed`` in the bins' middles and at the cycle's ends, to a tenth of a pixel."""
    minutes = np.concatenate([[0.0], wave.minutes + wave.bin_minutes / 2, [plot.cycle]])
    xs = np.round(plot.left + (plot.right - plot.left) * minutes / plot.cycle, 1)
    ys = np.round(plot.bottom - (plot.bottom - plot.top) * np.clip(closed / plot.most, 0.0, 1.0), 1)
    return [f"{x:g},{y:g}" for x, y in zip(xs.tolist(), ys.tolist(), strict=True)]


def _runs(full: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> list[tuple[int, int]]:
    """Stretches ``[first, last)`` of True."""
    marks = np.flatnonzero(np.diff(np.concatenate([[False], full, [False]]).astype(np.int8)))
    return [(int(first), int(last)) for first, last in zip(marks[::2], marks[1::2], strict=True)]
