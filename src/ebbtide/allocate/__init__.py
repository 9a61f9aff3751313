"""The schedule by marginal gains: curves, packing, nodes, moves, the cycle, the bound, the why.

What belongs here: everything between planned demand and a Schedule with its Explanation. What doesn't: queueing
formulas (``queueing``), which past days speak (``forecast``), documents and rendering.
"""
