"""What is ListOps? Nested list operations over digits, to be evaluated to one digit; drawn from a seed.

    tree(depth) = an operator over k ~ uniform{2..10} trees of depth + 1, with probability 1/4 where depth < 10,
                  else a digit;   the root has depth 1
    length      = 1 for a digit, 2 + sum of the children's for an operator, which is written [OP child .. child ]

Trees are drawn many at a time, depth after depth, and kept where their length is allowed and no equal tree was kept
before. The file that Long Range Arena published cannot be regenerated bit for bit; this one comes out the same for
the same seed everywhere, since it draws nothing but uniform doubles.

Source: Long Range Arena, GitHub google-research/long-range-arena; ListOps, arXiv:1804.06028.
"""

from dataclasses import dataclass

import numpy as np

from rotrnn_core.tasks.dataset import Array, Dataset, Sequences

PROTOCOL = 1
"""Changes whenever the same seed would give other trees or other token ids."""
OPERATORS = ("[MIN", "[MAX", "[MED", "[SM")
VOCABULARY = ("<pad>", "<unk>", "<eos>", *(str(digit) for digit in range(10)), *OPERATORS, "X")
"""Token ids by place; X closes a list, as in the readers of Long Range Arena's file."""
EOS, FIRST_DIGIT, FIRST_OPERATOR, CLOSE = 2, 3, 13, 17

OPERATOR_SHARE = 0.25
DEEPEST = 10
FEWEST_CHILDREN, MOST_CHILDREN = 2, 10
TREES_AT_ONCE = 20_000


def generate(lengths: range, seed: int, *, train: int, validation: int, test: int) -> Dataset:
    """Draw distinct trees from a seed.

    Args:
        lengths: Allowed lengths of a tree, without the end mark that each sequence carries as its last token.
        seed: Source of all randomness. The test split is the beginning of the stream, then validation, then train.
        train: Number of training sequences; likewise validation and test.

    Returns:
        Sequences of token ids with the digits they evaluate to.
    """
    sizes = {"test": test, "validation": validation, "train": train}
    missing = sum(sizes.values())
    seen: set[bytes] = set()
    kept: list[bytes] = []
    labels: list[int] = []
    drawn = 0
    while missing:
        found = draw(np.random.default_rng([seed, drawn]), TREES_AT_ONCE, lengths)
        drawn += 1
        for index in range(len(found)):
            text = found.sequence(index).tobytes()
            if missing and text not in seen:
                seen.add(text)
                kept.append(text)
                labels.append(int(found.labels[index]))
                missing -= 1
    splits = {}
    begin = 0
    for split, size in sizes.items():
        texts = kept[begin : begin + size]
        offsets = np.concatenate([[0], np.cumsum([len(text) for text in texts])]).astype(np.int64)
        tokens = np.frombuffer(b"".join(texts), dtype=np.uint8)
        splits[split] = Sequences(tokens, offsets, np.array(labels[begin : begin + size], dtype=np.uint8))
        begin += size
    return Dataset(**splits)


@dataclass(frozen=True, eq=False)
class _Level:
    """The nodes of one depth, siblings side by side: parent (place in the level above), operator (-1: a digit),
    children (0 for a digit), value (a digit's own; an operator's once its children are known)."""

    parent: Array
    operator: Array
    children: Array
    value: Array

    def only(self, keep: Array, parent_place: Array) -> "_Level":
        return _Level(parent_place[self.parent[keep]], self.operator[keep], self.children[keep], self.value[keep])


def draw(rng: np.random.Generator, count: int, lengths: range) -> Sequences:
    """Draw `count` trees and keep those of an allowed length, equal ones included."""
    levels = _grow(rng, count, longest=lengths[-1])
    sizes = _sizes(levels)
    allowed = (sizes[0] >= lengths[0]) & (sizes[0] <= lengths[-1])
    levels, sizes = _keep_trees(levels, sizes, allowed)
    values = _evaluate(levels)
    return _write_out(levels, sizes, values)


def _grow(rng: np.random.Generator, count: int, longest: int) -> list[_Level]:
    """All levels of `count` trees; a tree already longer than `longest` grows no further."""
    levels: list[_Level] = []
    parent = np.arange(count)
    tree = np.arange(count)
    least_length = np.zeros(count, dtype=np.int64)
    for depth in range(1, DEEPEST + 1):
        if not len(parent):
            break
        chance, operator_draw, children_draw, digit_draw = rng.random((4, len(parent)))
        is_operator = (chance < OPERATOR_SHARE) & (depth < DEEPEST)
        operator = np.where(is_operator, _uniform(operator_draw, 0, len(OPERATORS)), -1)
        children = np.where(is_operator, _uniform(children_draw, FEWEST_CHILDREN, MOST_CHILDREN + 1), 0)
        least_length += np.bincount(tree, weights=np.where(is_operator, 2, 1), minlength=count).astype(np.int64)
        children[least_length[tree] > longest] = 0
        levels.append(_Level(parent, operator, children, _uniform(digit_draw, 0, 10)))
        parent = np.repeat(np.arange(len(parent)), children)
        tree = np.repeat(tree, children)
    return levels


def _uniform(draws: Array, low: int, high: int) -> Array:
    """Whole numbers in [low, high) from doubles in [0, 1)."""
    return low + (draws * (high - low)).astype(np.int64)


def _sizes(levels: list[_Level]) -> list[Array]:
    """Length of the tree under each node, by level."""
    sizes = [np.where(level.operator >= 0, 2, 1) for level in levels]
    for above, here, level in zip(sizes[-2::-1], sizes[:0:-1], levels[:0:-1], strict=True):
        above += np.bincount(level.parent, weights=here, minlength=len(above)).astype(np.int64)
    return sizes


def _keep_trees(levels: list[_Level], sizes: list[Array], keep: Array) -> tuple[list[_Level], list[Array]]:
    kept_levels, kept_sizes = [], []
    parent_place = np.arange(len(keep))
    for level, size in zip(levels, sizes, strict=True):
        keep = keep[level.parent]
        kept_levels.append(level.only(keep, parent_place))
        kept_sizes.append(size[keep])
        parent_place = np.cumsum(keep) - 1
    return kept_levels, kept_sizes


def _evaluate(levels: list[_Level]) -> Array:
    """The digit that each tree comes to, from the deepest level upwards."""
    for above, here in zip(levels[-2::-1], levels[:0:-1], strict=True):
        lists = np.flatnonzero(above.children)
        counts = above.children[lists]
        starts = np.cumsum(counts) - counts
        if not len(lists):
            continue
        ordered = here.value[np.lexsort((here.value, here.parent))]
        low, high = ordered[starts + (counts - 1) // 2], ordered[starts + counts // 2]
        results = np.stack(
            [ordered[starts], ordered[starts + counts - 1], (low + high) // 2, np.add.reduceat(ordered, starts) % 10]
        )
        above.value[lists] = results[above.operator[lists], np.arange(len(lists))]
    return levels[0].value


def _write_out(levels: list[_Level], sizes: list[Array], values: Array) -> Sequences:
    """Lay the trees end to end as token ids, each closed by the end mark."""
    lengths = sizes[0] + 1
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    tokens = np.full(offsets[-1], EOS, dtype=np.uint8)
    starts = offsets[:-1]
    for depth, (level, size) in enumerate(zip(levels, sizes, strict=True)):
        if depth:
            ahead = np.cumsum(size) - size
            first = np.cumsum(np.bincount(level.parent, minlength=len(starts))) - np.bincount(
                level.parent, minlength=len(starts)
            )
            starts = starts[level.parent] + 1 + ahead - ahead[first[level.parent]]
        lists = level.operator >= 0
        tokens[starts] = np.where(lists, FIRST_OPERATOR + level.operator, FIRST_DIGIT + level.value)
        tokens[(starts + size - 1)[lists]] = CLOSE
    return Sequences(tokens, offsets, values.astype(np.uint8))
