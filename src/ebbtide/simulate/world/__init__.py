"""A world made of arithmetic: two clusters, a cloud and the people around them, in virtual time, as unkind as the real.

What belongs here: machines and the provider that moves them, replicas and their pods, research work under quota, what
goes wrong and who else meddles, and the ground truth that a controller never sees. What doesn't: deciding
(``control``), requests in queues (``simulate.fcfs``), the driver's loop. ``simulated.SimulatedWorld`` is the door.

Behaviour follows what Kubernetes and Kueue were seen to do; where a comment says "seen", it was tried on a cluster.
Instants are seconds since 1970 in UTC, as in ``control``.
"""
