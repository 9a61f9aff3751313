"""The real world: two clusters behind their API servers, as a ``control.world.World``. The only door to an API server.

What belongs here: connections and what their errors mean, objects as they read (``objects``), translated into the
controller's nouns (``*_sight``), actions carried out as API calls (``*_acts``), and the home of the memory. What
doesn't: which action is right (``control``), how a provider gives and takes machines (``adapters.nodepools``).
"""
