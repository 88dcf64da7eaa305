"""How does a free matrix become a rotation?"""

import torch
from jaxtyping import Float
from torch import Tensor


def rotation_from(M: Float[Tensor, "n_heads d_head d_head"]) -> Float[Tensor, "n_heads d_head d_head"]:
    """P = expm(M - M^T), a rotation for each head.

    Args:
        M: Free parameters, any real numbers, (n_heads, d_head, d_head).

    Returns:
        Matrices of SO(d_head), (n_heads, d_head, d_head), in M's dtype; NaN throughout for a head whose M holds a
        value that is not finite (matrix_exp itself gives finite nonsense there).
    """
    skew = M - M.mT
    finite = torch.isfinite(skew).all(dim=(-2, -1), keepdim=True)
    P = torch.linalg.matrix_exp(torch.where(finite, skew, torch.zeros_like(skew)))
    return torch.where(finite, P, torch.full_like(P, torch.nan))
