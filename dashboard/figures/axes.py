"""Which ticks make a logarithmic axis readable, and in which form do values travel to the browser?"""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Axis = dict[str, Any]


def log_axis(low: float, high: float, prefix: str = "", *, most: int = 6) -> Axis:
    """A logarithmic axis over two positive bounds with readable ticks, at most about `most` of them."""
    ticks = log_ticks(low, high, most)
    return {
        "type": "log",
        "range": [math.log10(low), math.log10(high)],
        "tickmode": "array",
        "tickvals": ticks,
        "ticktext": [f"{prefix}{tick_text(tick)}" for tick in ticks],
    }


def log_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round values between two positive bounds for a logarithmic axis, at most about `most` of them.

    Narrow ranges get evenly spaced values, wide ones 1, 2, 5 of each decade, wider ones decades alone.
    """
    if high / low < 2:
        rough = (high - low) / most
        size = 10 ** math.floor(math.log10(rough))
        step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= rough * 0.999)
        first = math.ceil(low / step - 1e-9)
        return [round(step * index, 12) for index in range(first, math.floor(high / step + 1e-9) + 1)]
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks: list[float] = []
    for factors in ((1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 7), (1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,)):
        every = [factor * 10.0**power for power in powers for factor in factors]
        ticks = [tick for tick in every if low <= tick <= high]
        if len(ticks) <= most:
            break
    return ticks[:: math.ceil(len(ticks) / most)]


def tick_text(value: float) -> str:
    """A tick's value without needless digits."""
    return f"{value:,g}" if 1e-3 <= value < 1e6 else f"{value:.0e}".replace("e+0", "e").replace("e-0", "e-")


def step_axis(first: float, last: float, *, ticks: int = 5) -> Axis:
    """Training steps: an axis of counts that says the step where it is hovered."""
    return count_axis(first, last, ticks=ticks) | {"unifiedhovertitle": {"text": "<b>step %{x:,}</b>"}}


def count_axis(first: float, last: float, *, ticks: int = 4) -> Axis:
    """Whole numbers with a separator of thousands; never a tick between two of them."""
    return {
        "range": [first, last],
        "tickformat": ",~d",
        **({"dtick": 1} if last - first <= ticks else {"nticks": ticks}),
    }


def share_axis(low: float, high: float) -> Axis:
    """Shares in percent, with as many decimals as tell the ticks apart."""
    digits = max(0, math.ceil(-math.log10(20 * (high - low)))) if high > low else 0
    return {"range": [low, high], "tickformat": f".{digits}%"}


def small(values: Iterable[float | None]) -> NDArray[np.float32]:
    """Values as four-byte floats, None as a gap: half the message, seven figures."""
    return np.array([math.nan if value is None else value for value in values], dtype=np.float32)


def whole(values: Iterable[int]) -> NDArray[np.int32]:
    """Steps as four-byte numbers."""
    return np.array(tuple(values), dtype=np.int32)
