"""What do many runs say together? The questions to the API that compare seeds, cells and depths, each typed."""

from collections.abc import Sequence
from typing import Any

from client.charts import Chart
from client.http import Transport
from client.results import HiddenNormComparison, Profiles
from client.seeds import Difference, MetricComparison, SurvivalGroup
from client.stability import Stability
from client.wire import items, read

OneOrMore = str | Sequence[str] | None
OneOrMoreNumbers = int | Sequence[int] | None


class Comparisons:
    """What a client can ask about many runs at once; client.api.RotBench is one."""

    _http: Transport

    def compare_hidden_norms(
        self,
        *,
        statistic: str = "relative",
        sweep_id: str | None = None,
        task: str | None = None,
        cell: OneOrMore = None,
        depth: OneOrMoreNumbers = None,
        layer: int | None = None,
        runs: bool = False,
        diverged: bool = False,
        scale: str | None = None,
        max_steps: int | None = None,
    ) -> HiddenNormComparison:
        """Hidden norms per cell, depth and layer: mean over seeds with n and a 95% interval per step.

        With `runs`, each group also holds the curve of every seed, with `diverged` that of every diverged one; with
        scale "log" the mean is geometric and its interval that of the logarithms; max_steps thins longer curves.
        """
        query = {
            "statistic": statistic,
            **_scope(sweep_id, task, cell, depth),
            "layer": layer,
            "runs": runs,
            "diverged": diverged,
            "scale": scale,
            "max_steps": max_steps,
        }
        return read(HiddenNormComparison, self._http.get("/v1/compare/hidden-norms", query))

    def compare_profiles(
        self,
        *,
        statistic: str = "per_head",
        sweep_id: str | None = None,
        task: str | None = None,
        cell: OneOrMore = None,
        depth: OneOrMoreNumbers = None,
        step: int | None = None,
    ) -> Profiles:
        """Norms along the sequence per cell, depth and layer: at the last kept step, or at the last up to `step`."""
        query = {
            "statistic": statistic,
            **_scope(sweep_id, task, cell, depth),
            "step": step,
        }
        return read(Profiles, self._http.get("/v1/compare/profiles", query))

    def stability(
        self,
        *,
        sweep_id: str | None = None,
        task: str | None = None,
        cell: OneOrMore = None,
        depth: OneOrMoreNumbers = None,
    ) -> Stability:
        """The stability numbers with intervals, paired differences and the verdict on the claim."""
        query = _scope(sweep_id, task, cell, depth)
        return read(Stability, self._http.get("/v1/compare/stability", query))

    def compare_metrics(
        self,
        key: str,
        *,
        sweep_id: str | None = None,
        task: str | None = None,
        cell: OneOrMore = None,
        depth: OneOrMoreNumbers = None,
        group_by: OneOrMore = None,
        max_steps: int | None = None,
    ) -> MetricComparison:
        """One metric per cell, depth and the fields of `group_by`: statistics over seeds at each step."""
        query = {
            "key": key,
            **_scope(sweep_id, task, cell, depth),
            "group_by": group_by,
            "max_steps": max_steps,
        }
        return read(MetricComparison, self._http.get("/v1/compare/metrics", query))

    def survival(
        self,
        *,
        sweep_id: str | None = None,
        task: str | None = None,
        cell: OneOrMore = None,
        depth: OneOrMoreNumbers = None,
    ) -> tuple[SurvivalGroup, ...]:
        """The share of seeds neither diverged nor stuck, per cell and depth, by step."""
        query = _scope(sweep_id, task, cell, depth)
        return items(SurvivalGroup, self._http.get("/v1/compare/survival", query), "groups")

    def differences(
        self,
        key: str = "test_accuracy",
        *,
        reference: str = "rotrnn",
        sweep_id: str | None = None,
        task: str | None = None,
        cell: OneOrMore = None,
        depth: OneOrMoreNumbers = None,
    ) -> tuple[Difference, ...]:
        """The last value of a metric in each cell minus that in the reference, paired by depth and seed."""
        query = {
            "key": key,
            "reference": reference,
            **_scope(sweep_id, task, cell, depth),
        }
        return items(Difference, self._http.get("/v1/compare/differences", query), "rows")

    def chart(self, run_ids: OneOrMore, keys: OneOrMore, *, buckets: int | None = None) -> Chart:
        """Metrics of several runs, each summed up in the same buckets of steps; a short series comes whole."""
        query = {"run_id": run_ids, "key": keys, "buckets": buckets}
        return read(Chart, self._http.get("/v1/charts/metrics", query))


def _scope(sweep_id: str | None, task: str | None, cell: OneOrMore, depth: OneOrMoreNumbers) -> dict[str, Any]:
    """The part of a question that says which runs it is about."""
    return {"sweep_id": sweep_id, "task": task, "cell": cell, "depth": depth}
