"""YAML documents ↔ values: the pydantic models are the one table behind schema, CRDs and reference (§8).

``fleet.read_fleet``, ``schedule.read_schedule`` and ``schedule.write_schedule`` are the doors; ``files`` replaces
outputs whole. What belongs here: the documents' form, the checks on one document by itself, their errors with file,
line and field. What doesn't: what the values mean (``fleet``), demand files (``adapters.demand``), what to do with an
answer (``workflows``). Importing this package imports nothing heavy; ruamel.yaml and pydantic come with the modules.
"""
