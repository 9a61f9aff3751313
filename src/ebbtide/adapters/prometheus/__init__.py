"""Prometheus as a source of numbers: queries and what their answers mean.

What belongs here: the HTTP API's questions and answers, and which series is whose. What doesn't: ebbtide's own metrics
(``adapters.telemetry``), what a rate means for the plan (``control``), where the server is (settings).
"""
