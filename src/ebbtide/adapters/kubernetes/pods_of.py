"""Which pods are whose: a workload's pods by its selector, looked up by one label instead of searched for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from ebbtide.adapters.kubernetes.objects import Pod, Requirement, Selector
from ebbtide.adapters.kubernetes.readings import matches


def pods_by_owner(selectors: Mapping[str, tuple[str, Selector]], pods: Iterable[Pod]) -> dict[str, list[Pod]]:
    """Pods of each name in ``selectors`` (namespace and selector)."""
    found: dict[str, list[Pod]] = {name: [] for name in selectors}
    by_label: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    by_namespace: dict[str, list[str]] = defaultdict(list)
    for name, (namespace, selector) in selectors.items():
        first = next(iter(selector.match_labels.items()), None)
        if first is None:
            by_namespace[namespace].append(name)
        else:
            by_label[namespace, *first].append(name)
    for pod in pods:
        space = pod.metadata.namespace
        near = [*by_namespace.get(space, ())]
        for key, value in pod.metadata.labels.items():
            near += by_label.get((space, key, value), ())
        for name in near:
            if matches(selectors[name][1], pod.metadata.labels):
                found[name].append(pod)
    return found


def parse_selector(text: str) -> Selector:
    """The selector that a scale's status tells in words.

    >>> one = parse_selector("app=chat,tier in (a,b),!old")
    >>> one.match_labels, [(r.key, r.operator, r.values) for r in one.match_expressions]
    ({'app': 'chat'}, [('tier', 'In', ['a', 'b']), ('old', 'DoesNotExist', [])])
    """
    labels: dict[str, str] = {}
    more: list[Requirement] = []
    for part in _parts(text):
        if " notin " in part or " in " in part:
            key, operator, values = part.replace("(", "").replace(")", "").split(" ", 2)
            more.append(Requirement(key=key, operator="In" if operator == "in" else "NotIn", values=values.split(",")))
        elif "!=" in part:
            key, _, value = part.partition("!=")
            more.append(Requirement(key=key, operator="NotIn", values=[value]))
        elif "=" in part:
            key, _, value = part.partition("=")
            labels[key] = value.lstrip("=")
        elif part.startswith("!"):
            more.append(Requirement(key=part[1:], operator="DoesNotExist"))
        else:
            more.append(Requirement(key=part, operator="Exists"))
    return Selector(match_labels=labels, match_expressions=more)


def _parts(text: str) -> list[str]:
    """Split at commas outside brackets."""
    found, depth, begin = [], 0, 0
    for at, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if sign == "," and depth == 0:
            found.append(text[begin:at])
            begin = at + 1
    return [one.strip() for one in [*found, text[begin:]] if one.strip()]
