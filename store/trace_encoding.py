"""Which bytes stand for a stretch of a series? Small differences of bit patterns, squeezed; every bit comes back.

A number is kept as the difference of its bit pattern from the one expected: the number one step earlier, or a
prediction. Where the two are close the difference has many leading zeros, which lie together once the bytes are
sorted by their place in the number; the last places are noise, which is kept as it is and costs the reader nothing.
No bytes at all stand for a prediction that is right throughout. NaN with its payload, the zeros' signs and subnormals
are bit patterns like others.
"""

import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[Any]

_INTEGERS: dict[int, np.dtype[Any]] = {4: np.dtype("<i4"), 8: np.dtype("<i8")}


def pack(values: Numbers, predicted: Numbers | None = None) -> bytes:
    """The bytes of a stretch.

    Args:
        values: (steps, columns), of 4 or 8 bytes each.
        predicted: What the reader will know already, in the same shape and type; else each step foretells the next.
    """
    size = values.dtype.itemsize
    bits = _bits(values)
    if predicted is None:
        differences = bits.copy()
        differences[:, 1:] -= bits[:, :-1]
    else:
        differences = bits - _bits(predicted)
        if not differences.any():
            return b""
    # Twice the size, and odd when negative: a small difference of either sign has leading zeros.
    folded = (differences << 1) ^ (differences >> (8 * size - 1))
    places = folded.view(np.uint8).reshape(-1, size).T
    squeezed = zlib.compressobj(level=1)
    # A block of its own for each place: one that cannot be made smaller is copied.
    parts = [squeezed.compress(place.tobytes()) + squeezed.flush(zlib.Z_PARTIAL_FLUSH) for place in places[::-1]]
    return b"".join(parts) + squeezed.flush()


def unpack(data: bytes, kind: type[np.generic], steps: int, predicted: Numbers | None = None) -> Numbers:
    """The stretch that `pack` was given, (steps, columns)."""
    if predicted is not None and not data:
        return predicted
    size = np.dtype(kind).itemsize
    places = np.frombuffer(zlib.decompress(data), dtype=np.uint8).reshape(size, -1)
    sorted_back = np.empty(places.shape[::-1], dtype=np.uint8)
    for place in range(size):
        sorted_back[:, size - 1 - place] = places[place]
    unsigned = sorted_back.view(f"<u{size}").reshape(-1)
    folded = (unsigned >> 1).view(_INTEGERS[size]) ^ -(unsigned & 1).view(_INTEGERS[size])
    differences = folded.reshape(-1, steps) if steps else folded.reshape(0, 0)
    if predicted is None:
        bits = np.cumsum(differences, axis=1, dtype=_INTEGERS[size])
    else:
        bits = differences + _bits(predicted)
    return np.ascontiguousarray(bits.T).view(kind)


def ratio(whole: Numbers, unit: Numbers) -> Numbers:
    """whole / unit, column by column, rounded to whole's type; the same bits on every machine, NaN too."""
    with np.errstate(all="ignore"):
        found: Numbers = (whole / unit).astype(whole.dtype, copy=False)
    nowhere = np.isnan(found)
    if nowhere.any():
        found[nowhere] = np.nan
    return found


def likely_unit(whole: Numbers, shares: Numbers) -> NDArray[np.float64]:
    """The divisor of each column that makes most of whole / divisor equal shares, both (steps, columns)."""
    with np.errstate(all="ignore"):
        guess = whole[0] / shares[0]
    guess = np.where(np.isfinite(guess) & (guess != 0), guess, 1.0)
    near = [guess, np.nextafter(guess, np.inf), np.nextafter(guess, -np.inf)]
    near += [np.nextafter(near[1], np.inf), np.nextafter(near[2], -np.inf)]
    hits = np.array([(ratio(whole, unit) == shares).sum(axis=0) for unit in near])
    best: NDArray[np.float64] = np.choose(hits.argmax(axis=0), near)
    return best


def _bits(values: Numbers) -> Numbers:
    bits: Numbers = np.ascontiguousarray(values.T).view(_INTEGERS[values.dtype.itemsize])
    return bits
