"""What is Contours? Dashed lines in a picture of 32 x 32: do the two dots end one line, or two?

A picture holds two long lines of DASHES dashes and up to DISTRACTORS short ones of a third as many. A line begins
anywhere, turns at each dash by at most TURN, stays inside, and keeps CLEARANCE from every other line and from itself.
In half of the pictures the dots mark both ends of one long line, in the others an end of each. A stand-in, after the
published parameters of Pathfinder where they are known (14 dashes, distractors of a third), for machines without its
release; it is not Pathfinder.

Source: after Linsley et al., arXiv:1805.08315.
"""

import math
from typing import no_type_check

import numpy as np

from rotrnn_core.tasks.compiling import compiled
from rotrnn_core.tasks.dataset import Array, Dataset, Scale, Sequences, of_one_length

PROTOCOL = 1
"""Changes whenever the same seed would give other pictures."""
SIDE = 32
DASHES, DISTRACTORS = 14, 6
DASH, GAP = 1.4, 0.9
"""Length of a dash and of the gap after it, in pixels."""
HALF_WIDTH, DOT = 0.4, 1.6
"""Half the width of a line and the radius of a dot, in pixels."""
TURN = 20
"""The most that a line turns from one dash to the next, in directions of 360 / 256 degrees."""
CLEARANCE, MARGIN = 2.6, 2.0
INK = 0.8
"""Shade of a line; a dot has 1."""
TRIES = 400
SCALE = Scale(mean=(127.5,), deviation=(127.5,))

DIRECTIONS = 256
_ANGLES = np.arange(DIRECTIONS) * (2 * math.pi / DIRECTIONS)
STEPS = np.round(np.stack([np.cos(_ANGLES), np.sin(_ANGLES)], axis=1), 6)
"""A step of length 1 in each direction, rounded so that every machine draws the same."""


def generate(seed: int, *, train: int, validation: int, test: int) -> Dataset:
    """Draw pictures from a seed: first the test split, then validation, then train."""
    splits: dict[str, Sequences] = {}
    begin = 0
    for split, size in (("test", test), ("validation", validation), ("train", train)):
        pictures, labels = draw(seed, begin, size)
        splits[split] = of_one_length(pictures.reshape(size, SIDE * SIDE, 1), labels, SCALE)
        begin += size
    return Dataset(**splits)


def draw(seed: int, begin: int, size: int) -> tuple[Array, Array]:
    """Pictures `begin` to `begin + size` of a seed, unsigned bytes (size, SIDE, SIDE), and whether the dots belong."""
    pictures = np.zeros((size, SIDE, SIDE), dtype=np.uint8)
    labels = np.zeros(size, dtype=np.uint8)
    _draw_all(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0], begin, STEPS, pictures, labels)
    return pictures, labels


@no_type_check
@compiled
def _draw_all(key: int, begin: int, steps: Array, pictures: Array, labels: Array) -> None:
    state = np.zeros(1, dtype=np.uint64)
    points = np.zeros((2 * (DASHES + 1) + DISTRACTORS * (DASHES // 3 + 1), 2))
    for index in range(len(pictures)):
        state[0] = key + np.uint64(begin + index) * np.uint64(0xD1342543DE82EF95)
        while not _place_line(state, steps, points, 0, DASHES) or not _place_line(
            state, steps, points, DASHES + 1, DASHES
        ):
            pass
        canvas = np.zeros((SIDE, SIDE))
        _paint_line(canvas, points, 0, DASHES)
        _paint_line(canvas, points, DASHES + 1, DASHES)
        taken = 2 * (DASHES + 1)
        for _ in range(DISTRACTORS):
            if _place_line(state, steps, points, taken, DASHES // 3):
                _paint_line(canvas, points, taken, DASHES // 3)
                taken += DASHES // 3 + 1
        one_line = _uniform(state) < 0.5
        labels[index] = one_line
        other_end = DASHES if one_line else DASHES + 1 + (DASHES if _uniform(state) < 0.5 else 0)
        for end in (0, other_end):
            _paint(canvas, points[end, 0], points[end, 1], 0.0, 0.0, DOT, 1.0)
        for y in range(SIDE):
            for x in range(SIDE):
                pictures[index, y, x] = np.uint8(255 * canvas[y, x] + 0.5)


@no_type_check
@compiled
def _uniform(state: Array) -> float:
    """The next number in [0, 1) of a splitmix64 generator."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return float(z >> np.uint64(11)) / 9007199254740992.0


@no_type_check
@compiled
def _place_line(state: Array, steps: Array, points: Array, taken: int, dashes: int) -> bool:
    """Try to lay a line that keeps clear of the points before `taken`; its corners become the points from there on."""
    for _ in range(TRIES):
        heading = int(_uniform(state) * DIRECTIONS)
        x = MARGIN + _uniform(state) * (SIDE - 1 - 2 * MARGIN)
        y = MARGIN + _uniform(state) * (SIDE - 1 - 2 * MARGIN)
        complete = True
        for corner in range(dashes + 1):
            if not _is_clear(points, taken, corner, x, y):
                complete = False
                break
            points[taken + corner, 0] = x
            points[taken + corner, 1] = y
            heading = (heading + int(_uniform(state) * (2 * TURN + 1)) - TURN) % DIRECTIONS
            x += steps[heading, 0] * (DASH + GAP)
            y += steps[heading, 1] * (DASH + GAP)
        if complete:
            return True
    return False


@no_type_check
@compiled
def _is_clear(points: Array, taken: int, corner: int, x: float, y: float) -> bool:
    if min(x, y) < MARGIN or max(x, y) > SIDE - 1 - MARGIN:
        return False
    for other in range(taken + corner):
        nearby = other >= taken + corner - 2 and other >= taken
        if not nearby and (points[other, 0] - x) ** 2 + (points[other, 1] - y) ** 2 < CLEARANCE**2:
            return False
    return True


@no_type_check
@compiled
def _paint_line(canvas: Array, points: Array, first: int, dashes: int) -> None:
    share = DASH / (DASH + GAP)
    for corner in range(first, first + dashes):
        x, y = points[corner, 0], points[corner, 1]
        across, down = share * (points[corner + 1, 0] - x), share * (points[corner + 1, 1] - y)
        _paint(canvas, x, y, across, down, HALF_WIDTH, INK)


@no_type_check
@compiled
def _paint(canvas: Array, x0: float, y0: float, across: float, down: float, radius: float, ink: float) -> None:
    """Cover what lies within `radius` of the segment from (x0, y0), with soft edges of a pixel."""
    reach = radius + 1
    length = across * across + down * down
    for y in range(max(0, int(min(y0, y0 + down) - reach)), min(SIDE, int(max(y0, y0 + down) + reach) + 1)):
        for x in range(max(0, int(min(x0, x0 + across) - reach)), min(SIDE, int(max(x0, x0 + across) + reach) + 1)):
            along = 0.0
            if length > 0:
                along = min(1.0, max(0.0, ((x - x0) * across + (y - y0) * down) / length))
            far = math.sqrt((x0 + along * across - x) ** 2 + (y0 + along * down - y) ** 2)
            canvas[y, x] = max(canvas[y, x], ink * min(1.0, max(0.0, radius + 0.5 - far)))
