"""The load driver: requests sent at their intended times whatever the answers do, and what became of each (§M.5–§M.7).

What belongs here: gaps (``gaps``), requests and where they come from (``items``, ``prompts``), the client (``client``,
``replies``, ``sse``), the open loop in a process of its own (``open_loop``, ``worker``, ``crew``), checks of answers
(``checks``, ``checkers``), the first request and what an endpoint says of itself (``preflight``, ``fingerprint``),
raw steps as files (``evidence``). What doesn't: which rate to try next and what the answers mean (``capacity``), the
target's document (``documents``), the server to try it on (``simserver``). Importing this package imports nothing
heavy.
"""
