"""Demand sources: files and tables become a ``Trace``.

What belongs here: columns by role, timestamps and zones, intervals, outages, sums, what a trace measures. What
doesn't: which days a plan stands on (``forecast``).
"""
