"""The controller's mind: from what was observed to what to do next, as pure arithmetic (§6).

What belongs here: the state as it was seen, actions as small values, the protocol that a world fulfils, the rules that
choose actions (targets, accounting, moves, guards), and one tick of the loop. What doesn't: how a cluster is read or
written (``adapters.kubernetes``, ``simulate.world``), planning (``allocate``), the clock: ``at_s`` is an argument.

Instants are seconds since 1970 in UTC (``_s`` on a name that is an instant: ``at_s``, ``seen_at_s``, ``since_s``).
"""
