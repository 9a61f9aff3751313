"""The ledger of runs while the controller is at work: read once, told of what ended, written when that is new."""

from __future__ import annotations

from ebbtide.adapters.kubernetes.door.runs import LedgerHome, runs_of
from ebbtide.adapters.kubernetes.door.sight import Sight
from ebbtide.adapters.kubernetes.problems import ApiError
from ebbtide.batch.door.ledger import Ledger
from ebbtide.workflows.run_told import Teller


class Bookkeeper:
    """Keeps the ledger. A home that does not answer stops nothing: estimates are taken as they were said."""

    def __init__(self, home: LedgerHome | None, teller: Teller) -> None:
        self._home, self._teller = home, teller
        self._read = home is None
        self._old: set[str] = set()  # runs that are over and not in the ledger: older ones than it keeps
        self.ledger = Ledger()

    def tell(self, sight: Sight, *, write: bool) -> Ledger:
        """The ledger with what ended since; kept at home where ``write``."""
        try:
            if not self._read and self._home is not None:
                self.ledger = self._home.read()
                self._read = True
            runs = tuple(runs_of(sight.ended, sight.queues, known=self.ledger.uids | self._old))
            told = self.ledger.told(runs)
            self._old = ({one.uid for one in runs} | self._old) - told.uids
            self._old &= {one.metadata.uid for one in sight.ended}
            if told != self.ledger:
                self.ledger = told
                if write and self._home is not None:
                    self._home.write(told)
            self._teller.once("job ledger", "")
        except ApiError as problem:
            self._teller.once("job ledger", str(problem))
        return self.ledger
