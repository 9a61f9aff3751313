"""One station: what n servers do to a stream of requests.

What belongs here: Erlang formulas, general and abandoning queues, replicas of k slots and how requests find them,
sizing, and the curves over n that allocation reads. What doesn't: prices, days, windows, simulation.
"""
