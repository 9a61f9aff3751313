"""Result files of other load generators, read into ``capacity.levels``: guidellm, AIPerf, inference-perf.

What belongs here: which tool wrote a file, and where in its form a rate, a percentile, the law of its arrivals stand.
The forms are those of the tools' own sources, named in each module. What doesn't: which load holds a target
(``capacity.levels``), the claim (``workflows``). Nothing but figures and a model's name is taken over: the files also
hold endpoints, prompts and keys.
"""
