"""How does a CPU run the scan at the speed of its memory? Compiled loops over tiles of (row of the batch, pairs).

A kernel reads one list of integers, `FIELDS`: sizes, strides in elements, and addresses. Threads draw tiles from the
counter at its head until none is left; no tile shares an output with another, so the number of threads changes no bit.
The pairs are the inner loop, side by side in vector registers. An eigenvalue is the sum of two numbers of the data's
precision, so that float32 holds it to float64's: its error would otherwise grow with the memory of the pair. The small
parts enter a sum first, while it still has room for them, and the largest product last, with one rounding.

Importing this module imports numba; machine code is made by `compiled`, and kept on disk.
"""

import functools
import inspect
from typing import Any, TypeVar, cast, no_type_check

import numba
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.extending import intrinsic

from rotrnn_core.machine_code import kept

Function = TypeVar("Function")

FIELDS = (
    "ticket",  # counter of the tiles handed out
    "tiles",
    "blocks",  # tiles per row
    "width",  # pairs per tile
    "pairs",
    "steps",  # places in time in this piece
    "offset",  # place in the sequence of the piece's first step
    "time",  # length of every row without `lengths`
    "lengths",  # address of each row's length, or 0
    "reverse",
    "factors",  # address of the eigenvalues, (4, pairs): re, its rest, im, its rest
    "states",  # address of what is scanned in place
    "states_row",
    "states_step",
    "carry_in",  # addresses of the state, or adjoint, met before the piece's first step and left after its last
    "carry_out",
    "gain",  # address of the factor on the drive of a row's first step, or 0
    "kept",  # adjoint: address of the states, its strides, and what lands on the last step's adjoint, or 0
    "kept_row",
    "kept_step",
    "arriving",
    "partial",  # adjoint: addresses of sums of one stretch, in the data's precision, and of all, in float64
    "sums",
)
TICKET, TILES, BLOCKS, WIDTH, PAIRS, STEPS, OFFSET, TIME, LENGTHS, REVERSE, FACTORS, STATES = range(12)
STATES_ROW, STATES_STEP, CARRY_IN, CARRY_OUT, GAIN, KEPT, KEPT_ROW, KEPT_STEP, ARRIVING, PARTIAL, SUMS = range(12, 23)
STRETCH = 128
"""Steps whose products are summed in the data's precision before they enter the float64 sums."""

_numba: Any = numba
"""numba's decorators and types are too loosely annotated to check calls against."""
_passes: Any = DefaultPassBuilder
_INTEGERS = _numba.types.CPointer(_numba.types.int64)
_DOUBLES = _numba.types.CPointer(_numba.types.float64)
_OPTIONS = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}


class _Apart(CompilerBase):
    """Compiles a function whose pointers never overlap."""

    def define_pipelines(self) -> list[Any]:
        """The usual passes, with that promise."""
        self.state.flags.noalias = True
        return [_passes.define_nopython_pipeline(self.state)]


def _inner(function: Function) -> Function:
    return cast(Function, _numba.njit(**_OPTIONS)(function))


def _inner_apart(function: Function) -> Function:
    return cast(Function, _numba.njit(pipeline_class=_Apart, **_OPTIONS)(function))


def _primitive(function: Function) -> Function:
    return cast(Function, intrinsic(function))


@functools.cache
def compiled(name: str, bits: int) -> Any:
    """The kernel `name`, "scan" or "adjoint", for floats of 32 or 64 bits; its `address` takes that of the FIELDS."""
    element = _numba.types.float32 if bits == 32 else _numba.types.float64
    wrap = functools.partial(_numba.cfunc, _numba.types.void(_numba.types.CPointer(element)), **_OPTIONS)
    return kept(wrap, inspect.unwrap({"scan": scan, "adjoint": adjoint}[name]))


@no_type_check
@_primitive
def _shift(_context, pointer, elements):
    """pointer + elements."""
    return pointer(pointer, _numba.types.int64), lambda _, builder, __, args: builder.gep(args[0], [args[1]])


@no_type_check
def _cast(context, builder, signature, args):
    target = context.get_value_type(signature.return_type)
    if isinstance(args[-1].type, ir.PointerType):
        return builder.bitcast(args[-1], target)
    return builder.inttoptr(args[-1], target)


@no_type_check
@_primitive
def _at(_context, like, address):
    """The address as a pointer of the type of `like`."""
    return like(like, address), _cast


@no_type_check
@_primitive
def _integers(_context, address):
    """The address, or pointer, as a pointer to int64."""
    return _INTEGERS(address), _cast


@no_type_check
@_primitive
def _doubles(_context, address):
    """The address as a pointer to float64."""
    return _DOUBLES(address), _cast


@no_type_check
@_primitive
def _draw(_context, counter):
    """The counter's value, and one more for whoever comes next."""

    def generate(_, builder, __, args):
        return builder.atomic_rmw("add", args[0], ir.Constant(ir.IntType(64), 1), "monotonic")

    return _numba.types.int64(_INTEGERS), generate


@no_type_check
@_inner_apart
def _advance(re, im, before_re, before_im, factors, pairs, width):
    """state = drive + eigenvalue * state before."""
    for c in range(width):
        x, y = before_re[c], before_im[c]
        a, b = factors[c], factors[2 * pairs + c]
        small_a, small_b = factors[pairs + c], factors[3 * pairs + c]
        re[c] = re[c] + small_a * x - small_b * y - b * y + a * x
        im[c] = im[c] + small_a * y + small_b * x + b * x + a * y


@no_type_check
@_inner_apart
def _advance_adjoint(re, im, later_re, later_im, factors, pairs, width, kept_re, kept_im, along, across):
    """adjoint = gradient + conjugate eigenvalue * adjoint after; sums of (adjoint after) x state, equal and crossed."""
    for c in range(width):
        x, y = later_re[c], later_im[c]
        a, b = factors[c], factors[2 * pairs + c]
        small_a, small_b = factors[pairs + c], factors[3 * pairs + c]
        along[c] += x * kept_re[c] + y * kept_im[c]
        across[c] += y * kept_re[c] - x * kept_im[c]
        re[c] = re[c] + small_a * x + small_b * y + b * y + a * x
        im[c] = im[c] + small_a * y - small_b * x - b * x + a * y


@no_type_check
@_inner_apart
def _copy(to, source, width):
    for c in range(width):
        to[c] = source[c]


@no_type_check
@_inner_apart
def _multiply(to, factor, width):
    for c in range(width):
        to[c] *= factor[c]


@no_type_check
@_inner_apart
def _add(to, part, width):
    for c in range(width):
        to[c] += part[c]


@no_type_check
@_inner
def _clear(to, width):
    for c in range(width):
        to[c] = 0


@no_type_check
@_inner
def _valid_steps(work, row):
    """Steps of the piece that lie before the row's end, and the row's length."""
    length = work[TIME]
    if work[LENGTHS] != 0:
        length = _integers(work[LENGTHS])[row]
    return max(0, min(length - work[OFFSET], work[STEPS])), length


@no_type_check
@_inner
def _clear_padding(states, work, valid, width):
    for t in range(valid, work[STEPS]):
        _clear(_shift(states, t * work[STATES_STEP]), width)
        _clear(_shift(states, t * work[STATES_STEP] + work[PAIRS]), width)


@no_type_check
def scan(address):
    """Turn drives into states in place; zero in the padding, which the state passes unchanged."""
    work = _integers(address)
    n, stride = work[PAIRS], work[STATES_STEP]
    while True:
        tile = _draw(work)
        if tile >= work[TILES]:
            return
        row, low = tile // work[BLOCKS], (tile % work[BLOCKS]) * work[WIDTH]
        width, carried = min(work[WIDTH], n - low), row * 2 * n + low
        states = _shift(_at(address, work[STATES]), row * work[STATES_ROW] + low)
        factors = _shift(_at(address, work[FACTORS]), low)
        valid, length = _valid_steps(work, row)
        _clear_padding(states, work, valid, width)
        begins = work[OFFSET] + valid == length if work[REVERSE] != 0 else work[OFFSET] == 0
        before = _shift(_at(address, work[CARRY_IN]), carried)
        for i in range(valid):
            now = _shift(states, (valid - 1 - i if work[REVERSE] != 0 else i) * stride)
            if i == 0 and begins and work[GAIN] != 0:
                gain = _shift(_at(address, work[GAIN]), low)
                _multiply(now, gain, width)
                _multiply(_shift(now, n), _shift(gain, n), width)
            _advance(now, _shift(now, n), before, _shift(before, n), factors, n, width)
            before = now
        left = _shift(_at(address, work[CARRY_OUT]), carried)
        _copy(left, before, width)
        _copy(_shift(left, n), _shift(before, n), width)


@no_type_check
def adjoint(address):
    """Turn gradients of states into gradients of drives in place, against the scan's direction.

    What is carried is the gradient of the state itself, before `gain`. The sums are those that the gradients of decay
    and phase are made of, except for the step before the first.
    """
    work = _integers(address)
    n, stride = work[PAIRS], work[STATES_STEP]
    while True:
        tile = _draw(work)
        if tile >= work[TILES]:
            return
        row, low = tile // work[BLOCKS], (tile % work[BLOCKS]) * work[WIDTH]
        width, carried = min(work[WIDTH], n - low), row * 2 * n + low
        states = _shift(_at(address, work[STATES]), row * work[STATES_ROW] + low)
        kept = _shift(_at(address, work[KEPT]), row * work[KEPT_ROW] + low)
        factors = _shift(_at(address, work[FACTORS]), low)
        part = _shift(_at(address, work[PARTIAL]), carried)
        sums = _shift(_doubles(work[SUMS]), carried)
        valid, length = _valid_steps(work, row)
        _clear_padding(states, work, valid, width)
        forwards = work[REVERSE] == 0
        ends = work[OFFSET] + valid == length if forwards else work[OFFSET] == 0
        begins = work[OFFSET] == 0 if forwards else work[OFFSET] + valid == length
        later = _shift(_at(address, work[CARRY_IN]), carried)
        _clear(part, width)
        _clear(_shift(part, n), width)
        for i in range(valid):
            t = valid - 1 - i if forwards else i
            now, then = _shift(states, t * stride), _shift(kept, t * work[KEPT_STEP])
            if i == 0 and ends and work[ARRIVING] != 0:
                arriving = _shift(_at(address, work[ARRIVING]), carried)
                _add(now, arriving, width)
                _add(_shift(now, n), _shift(arriving, n), width)
            _advance_adjoint(
                now,
                _shift(now, n),
                later,
                _shift(later, n),
                factors,
                n,
                width,
                then,
                _shift(then, n),
                part,
                _shift(part, n),
            )
            later = now
            if (i + 1) % STRETCH == 0 or i + 1 == valid:
                _add(sums, part, width)
                _add(_shift(sums, n), _shift(part, n), width)
                _clear(part, width)
                _clear(_shift(part, n), width)
        left = _shift(_at(address, work[CARRY_OUT]), carried)
        _copy(left, later, width)
        _copy(_shift(left, n), _shift(later, n), width)
        if valid > 0 and begins and work[GAIN] != 0:
            gain = _shift(_at(address, work[GAIN]), low)
            _multiply(later, gain, width)
            _multiply(_shift(later, n), _shift(gain, n), width)
