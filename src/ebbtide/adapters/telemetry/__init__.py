"""What ebbtide says of itself while it runs: metrics, health, log lines (§6.10).

What belongs here: names of metrics and their labels, the small HTTP server that shows them, the log's form. What
doesn't: Events and conditions on objects (``adapters.kubernetes``), what is decided (``control``).
"""
