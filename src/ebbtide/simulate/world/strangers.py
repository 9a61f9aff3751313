"""People and other controllers: what they do at an instant, and what undoes it.

Every deed goes to the tally by name. What lasts is undone by whoever did it, or by somebody who mends it.
"""

from __future__ import annotations

from collections.abc import Callable

from ebbtide.control.state import Side
from ebbtide.simulate.world.dice import Dice
from ebbtide.simulate.world.edits import Edits
from ebbtide.simulate.world.node_deeds import NodeDeeds
from ebbtide.simulate.world.tally import Tally
from ebbtide.simulate.world.things import Deed, Things
from ebbtide.simulate.world.timeline import Timeline
from ebbtide.simulate.world.troubles import LASTS_S, Pace, Trouble, Troubles


class Strangers:
    """Whoever else has a hand on the clusters."""

    def __init__(
        self, things: Things, line: Timeline, tally: Tally, dice: Dice, troubles: Troubles, pace: Pace
    ) -> None:
        self.things, self.troubles = things, troubles
        self.until_s = troubles.until_s
        self.undone: dict[int, Callable[[], None]] = {}  # what is to be undone still
        self._number = 0
        self._line, self._tally, self._dice = line, tally, dice
        self._deeds: dict[Trouble, Deed] = {
            **NodeDeeds(things, line, tally, dice).deeds,
            **Edits(things, line, tally, dice, pace).deeds,
        }
        for trouble, per_day in troubles.per_day:
            self._next(trouble, per_day)

    def _next(self, trouble: Trouble, per_day: float) -> None:
        if per_day > 0.0:
            self._line.after(self._dice.gap_s(per_day), self._by_chance, trouble, per_day, loud=False)

    def _by_chance(self, trouble: Trouble, per_day: float) -> None:
        if self._line.now_s < self.until_s:
            self.strike(trouble)
            self._next(trouble, per_day)

    def strike(self, trouble: Trouble, what: str = "", lasts_s: float | None = None) -> None:
        """Let a trouble happen now, to the named object or to one by chance; nothing where there is none such."""
        if lasts_s is None:
            lasts_s = self._dice.between(LASTS_S[trouble]) if trouble in LASTS_S else 0.0
        if trouble in (Trouble.DARK_PRODUCTION, Trouble.DARK_RESEARCH):
            side = Side.PRODUCTION if trouble is Trouble.DARK_PRODUCTION else Side.RESEARCH
            self.things.darken(side, self._line.now_s + lasts_s)
            self._tally.did("network", trouble.value, side.value, self._line.now_s)
            return
        undo = self._deeds[trouble](what)
        if undo is not None:
            self._number += 1
            self.undone[self._number] = undo
            self._line.after(lasts_s, self._undo, self._number)

    def _undo(self, number: int) -> None:
        undo = self.undone.pop(number, None)
        if undo is not None:
            undo()

    def stop(self) -> None:
        """Undo everything that is still to be undone."""
        for number in list(self.undone):
            self._undo(number)
