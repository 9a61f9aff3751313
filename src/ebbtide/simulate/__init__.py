"""Request streams and queues in virtual time; seeds are arguments.

What belongs here: arrivals, FCFS queues with a changing number of servers. What doesn't: planning, files, the clock.
"""
