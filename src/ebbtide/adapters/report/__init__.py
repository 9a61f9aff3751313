"""The self-contained ``report.html``: works offline, charts as our own SVG.

What belongs here: the shapes of the charts (``tide``, ``chart``, ``sparks``), the tables' cells (``tables``), people's
figures (``figures``), the templates. What doesn't: any number of the plan itself; the report shows what Schedule and
Explanation say, and the demand that was seen (``profiles``). Use ``report.render.render_report``.
"""
