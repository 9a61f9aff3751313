"""Kueue's door: Workloads that wait, their queues and the check ``ebbtide.dev/tide``, read and written (§7.4).

Belongs here: Kueue's objects as ``batch.door``'s values, and decisions as API calls. Does not belong here: who is let
in when (``batch.door``), quota and nodes (the rest of ``adapters.kubernetes``), when to look (``workflows``).
"""
