"""The nouns: pools, workloads, the horizon's windows, demand, schedules.

What belongs here: frozen values that several rooms speak of, the rules that make one value whole (a percentile lies
inside (0, 1)), and arithmetic that needs nothing but the value. What doesn't: policy (``allocate``), queueing, file
formats (``adapters.documents``) and anything that reads a clock.
"""
