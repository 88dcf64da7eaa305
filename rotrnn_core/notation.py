"""Which tensors are there? Their names, axes, units and order in memory, once for all of rotrnn_core.

Axes: batch, time (place in the sequence), d_model (width of the residual stream), d_state (real numbers in one
layer's state, one direction), n_heads, d_head = d_state / n_heads, pairs = d_state / 2, directions (1 or 2).

A state is a list of pairs of real numbers, each pair turned by its own phase. It lies in memory in one of two orders:
heads order, (head, pair, component), in which parameters and `cell.states` are written, and scan order, [re | im]:
the first components of all pairs, then the second ones, in which the scan runs.
"""

from typing import TypeAlias

from jaxtyping import Bool, Float, Int
from torch import Tensor

Inputs: TypeAlias = Float[Tensor, "batch time d_model"]
"""What a cell, gate or block reads and gives."""
Input: TypeAlias = Float[Tensor, "batch d_model"]
"""One step of it."""
CellStates: TypeAlias = Float[Tensor, "batch time {self.directions*self.d_state}"]
"""Every state of a cell, heads order, both directions of a head side by side: (head, direction, d_head)."""
CellState: TypeAlias = Float[Tensor, "batch {self.d_state}"]
"""One state of a cell of one direction, heads order."""

Drive: TypeAlias = Float[Tensor, "batch time d_state"]
"""Driving input of a scan, projected and normalised, scan order."""
States: TypeAlias = Float[Tensor, "batch time d_state"]
"""Every state of a scan, scan order."""
State: TypeAlias = Float[Tensor, "batch d_state"]
"""One state of a scan, scan order."""
Decay: TypeAlias = Float[Tensor, "d_state//2"]
"""Length that each pair keeps from one step to the next: modulus of its eigenvalue, dimensionless, in (0, 1)."""
Phase: TypeAlias = Float[Tensor, "d_state//2"]
"""Angle that each pair turns per step, in radians."""

Tokens: TypeAlias = Int[Tensor, "batch time"]
"""Token ids; what lies at or after a sequence's length is padding."""
Frames: TypeAlias = Float[Tensor, "batch time channels"]
"""Real-valued inputs, such as pixels or samples; what lies at or after a sequence's length is padding."""
Lengths: TypeAlias = Int[Tensor, " batch"]
"""Number of valid steps of each sequence."""
Labels: TypeAlias = Int[Tensor, " batch"]
"""Class of each sequence."""
Valid: TypeAlias = Bool[Tensor, "batch time"]
"""True where a step belongs to its sequence, False in the padding."""
Logits: TypeAlias = Float[Tensor, "batch classes"]
"""Unnormalised log-probabilities."""
