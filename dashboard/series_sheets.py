"""Which numbers stand behind a figure? Its data as columns, one line per point, for the CSV."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from client import HiddenNormGroup, HiddenNormTrace, MetricSeries, ProfileGroup
from dashboard.sheets import Sheet

_NORMS = ("n", "mean", "low", "high", "minimum", "maximum", "non_finite")
_PROFILES = ("n", "mean", "low", "high", "non_finite")


def norms_sheet(groups: Iterable[HiddenNormGroup]) -> Sheet:
    """One line per task, cell, depth, layer and training step; mean is geometric, low and high its 95% interval."""
    return _long(groups, ("task", "cell", "depth", "layer", "statistic"), ("step", "steps"), _NORMS)


def profiles_sheet(groups: Iterable[ProfileGroup]) -> Sheet:
    """One line per task, cell, depth, layer, training step and place in the sequence."""
    fields = ("task", "cell", "depth", "layer", "statistic", "steps")
    sheet = _long(groups, fields, ("position", "positions"), _PROFILES)
    sheet["steps"] = [" ".join(map(str, sorted(set(steps)))) for steps in sheet["steps"]]
    return sheet


def metrics_sheet(series: Mapping[str, MetricSeries], keys: Iterable[str]) -> Sheet:
    """One line per metric and training step, as thinned for the page."""
    found = [series[key] for key in keys if key in series]
    return {
        "metric": [one.key for one in found for _ in one.steps],
        "attempt": [attempt for one in found for attempt in one.attempts],
        "step": [step for one in found for step in one.steps],
        "value": [value for one in found for value in one.values],
    }


def trace_sheet(trace: HiddenNormTrace, statistic: str) -> Sheet:
    """One line per training step and layer of one run."""
    chosen = [one for one in trace.series if one.statistic == statistic]
    lines = [(one, at, layer) for one in chosen for at in range(len(one.steps)) for layer in range(trace.layers)]
    sheet: Sheet = {"step": [one.steps[at] for one, at, _ in lines], "layer": [layer for _, _, layer in lines]}
    for name in ("mean", "deviation", "minimum", "maximum", "non_finite"):
        sheet[name] = [getattr(one, name)[at][layer] for one, at, layer in lines]
    return sheet


def _long(groups: Iterable[Any], fields: Sequence[str], along: tuple[str, str], values: Sequence[str]) -> Sheet:
    pairs = [(group, at) for group in groups for at in range(len(getattr(group, along[1])))]
    sheet: Sheet = {name: [getattr(group, name) for group, _ in pairs] for name in fields}
    sheet[along[0]] = [getattr(group, along[1])[at] for group, at in pairs]
    return sheet | {name: [getattr(group, name)[at] for group, at in pairs] for name in values}
