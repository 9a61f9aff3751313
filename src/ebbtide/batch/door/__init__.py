"""Work at Kueue's door: what each Workload asked for, when it is let in, and what it is told (§7.4–§7.6).

Belongs here: annotations as values, the plan that follows what is seen, and the decisions that follow from it: who
moves to the live queue now, what the check answers, what is promised. Does not belong here: Kueue's objects, reading
and writing them (``adapters.kubernetes.door``), sentences for people (``workflows``).
"""
