"""From load steps to sustained capacity: the highest rate that holds latency, errors and quality (§M.1–§M.9).

What belongs here: what a step's answers say (``limits``, ``batches``, ``memory``), whether a rate passes
(``verdict``), where to measure next (``bracket``, ``search``), the rate with its interval (``fit``, ``crossing``),
what a run costs (``budget``), paired quality (``quality``), the claim's values (``claim``), two settings against each
other (``compare``). Everything is a function of the answers so far: a run can stop and go on anywhere. What doesn't:
sending requests, clocks, files (``adapters``).
"""
