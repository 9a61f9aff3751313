"""A server to try `measure` on: OpenAI's chat, completions and embeddings over a queue whose rate is known.

What belongs here: the queue in time that is calculated, not waited for (``slots``), and HTTP around it (``app``,
``serve``). What doesn't: the driver (``load``) and queues in virtual time (``simulate``). Importing this package
imports nothing heavy.
"""
