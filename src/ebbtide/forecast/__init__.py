"""From demand seen to demand to plan for (§5.3).

What belongs here: which past intervals speak for a window, margins and how they are tuned on past days only. What
doesn't: queueing of plans, files, the clock.
"""
