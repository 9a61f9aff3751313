"""The self-contained ``report.html``: works offline, charts as our own SVG."""
