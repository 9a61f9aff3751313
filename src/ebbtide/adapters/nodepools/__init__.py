"""How machines change sides: one small protocol, and one module for each kind of provider.

What belongs here: what a provider was asked for and what it says, named removal, growth to an absolute size. What
doesn't: which node goes and when (``control``), cordons and drains (``adapters.kubernetes``), credentials.
"""
