"""Read → compute → write, one per command; the only place where a clock or a seed is made.

What belongs here: the order of steps of a command. What doesn't: rules (the core), formats (``adapters``), exit codes
and rendering (``cli``).
"""
