"""Request streams, queues and policies in virtual time; seeds are arguments.

What belongs here: arrivals (``arrivals``, ``streams``), FCFS queues with a changing number of servers (``fcfs`` looks
ahead, ``lines`` and ``runs`` stop and go on), an autoscaler, what policies give and how they score; a world of
machines, pods and people (``world``), batch jobs with true durations (``jobs``). What doesn't: the planner, files, the
clock.
"""
