"""What is the scan? The rotational recurrence, one step after another."""

import torch

from rotrnn_core.notation import Decay, Drive, Phase, State, States


def scan_sequential(
    drive: Drive, decay: Decay, phase: Phase, h0: State | None = None, *, reverse: bool = False
) -> States:
    """Run the rotational recurrence one step after another.

        h[t] = decay * R(phase) h[t-1] + drive[t],    R(a) = [[cos a, -sin a], [sin a, cos a]] on each pair

    This is the definition: slow, and the yardstick that every faster form must match. One decay per pair serves all
    cells: a RotRNN head repeats its decay over its pairs, an LRU channel is a head of one pair.

    Args:
        drive: Driving input in scan order [re | im], already projected and normalised, (batch, time, d_state).
        decay: Length kept from one step to the next, dimensionless, in (0, 1), (d_state / 2,); best in float64.
        phase: Angle turned per step, in radians, (d_state / 2,); best in float64.
        h0: State before the first step, (batch, d_state); zero when absent.
        reverse: Run from the last step to the first; h0 then lies after the last.

    Returns:
        Every state at its own place in time, (batch, time, d_state), in drive's dtype.

    Source:
        RotRNN, arXiv:2407.07239, the recurrence in the eigenbasis of A; LRU, arXiv:2303.06349, in real pairs.
    """
    re_factor = (decay * torch.cos(phase)).to(drive.dtype)
    im_factor = (decay * torch.sin(phase)).to(drive.dtype)
    state = torch.zeros_like(drive[:, 0]) if h0 is None else h0
    states = []
    steps = drive.unbind(1)
    for now in reversed(steps) if reverse else steps:
        re, im = state.chunk(2, dim=-1)
        turned = torch.cat([re_factor * re - im_factor * im, im_factor * re + re_factor * im], dim=-1)
        state = turned + now
        states.append(state)
    return torch.stack(states[::-1] if reverse else states, dim=1)
