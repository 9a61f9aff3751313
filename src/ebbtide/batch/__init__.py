"""Jobs with deadlines in the hollows of the wave: what fits where and when, and what to admit now (DESIGN §7).

Belongs here: jobs and their durations, the research capacity of a schedule as a profile of free nodes, list rules, the
search for better plans and its bound, what makes an infeasible set feasible, and whether a workload may start before
the tide turns. Does not belong here: reading job files or traces, Kueue's objects, clocks; rates and queues of
requests are in `queueing`, moving nodes is in `control`.
"""
