"""ebbtide: a capacity controller for GPU fleets that production inference and research share.

Rooms, from the bottom up (upper ones import lower ones only; import-linter checks it):
``errors units › fleet › queueing › allocate | forecast › simulate | adapters › workflows › cli | web``.
From ``simulate`` and ``allocate`` down the code is pure: no I/O, clock, environment or logging.
"""
