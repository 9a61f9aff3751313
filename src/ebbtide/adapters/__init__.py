"""Everything that touches the outside: demand sources, documents, the report.

What belongs here: files and their forms, translated to and from the core's values. What doesn't: policy, arithmetic
on demand or plans, and the choice of what to do with an answer (``workflows``).
"""
