"""Muon for matrices, AdamW for the rest, with one linear decay.

Muon replaces a matrix's momentum by the nearest orthogonal matrix (five Newton-Schulz steps, K. Jordan 2024).
"""

import torch
from torch import nn

NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)


def orthogonalise(g: torch.Tensor, steps: int = 5) -> torch.Tensor:
    """Singular values pushed towards 1, [..., rows, columns]."""
    a, b, c = NEWTON_SCHULZ
    tall = g.shape[-2] > g.shape[-1]
    x = g.transpose(-1, -2) if tall else g
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        square = x @ x.transpose(-1, -2)
        x = a * x + (b * square + c * square @ square) @ x
    return x.transpose(-1, -2) if tall else x


class Muon(torch.optim.Optimizer):
    """Momentum with a lookahead, orthogonalised; matrices of one size are done together."""

    def __init__(self, params: list[nn.Parameter], lr: float, momentum: float = 0.95) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # noqa: ARG002 - the base class asks for it
        for group in self.param_groups:
            by_size: dict[torch.Size, list[nn.Parameter]] = {}
            for parameter in group["params"]:
                by_size.setdefault(parameter.shape, []).append(parameter)
            for same in by_size.values():
                self._step_together(same, group["lr"], group["momentum"])

    def _step_together(self, params: list[nn.Parameter], lr: float, momentum: float) -> None:
        updates = torch.stack([self._momentum(parameter, momentum) for parameter in params])
        scale = max(1.0, updates.shape[-2] / updates.shape[-1]) ** 0.5
        for parameter, update in zip(params, orthogonalise(updates), strict=True):
            parameter.add_(update, alpha=-lr * scale)

    def _momentum(self, parameter: nn.Parameter, momentum: float) -> torch.Tensor:
        grad = parameter.grad
        buffer = self.state[parameter].setdefault("momentum", torch.zeros_like(grad))
        buffer.lerp_(grad, 1 - momentum)
        return grad.lerp(buffer, momentum)


class Optimisers:
    """Muon on hidden matrices, AdamW on embeddings and norms; `step(done)` decays both linearly to zero."""

    def __init__(self, model: nn.Module, muon_lr: float, adam_lr: float) -> None:
        trained = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
        matrices = [p for name, p in trained if _is_hidden_matrix(name, p)]
        rest = [p for name, p in trained if not _is_hidden_matrix(name, p)]
        self.all = [Muon(matrices, muon_lr), torch.optim.AdamW(rest, adam_lr, betas=(0.9, 0.95), weight_decay=0.0)]
        self.peaks = [muon_lr, adam_lr]

    def step(self, done: float) -> None:
        """One update; `done` is the share of the training that is over, 0..1."""
        factor = min(1.0, 20 * done + 0.05) * min(1.0, 1.6 * (1 - done) + 0.02)
        for optimiser, peak in zip(self.all, self.peaks, strict=True):
            for group in optimiser.param_groups:
                group["lr"] = peak * factor
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)


def _is_hidden_matrix(name: str, parameter: nn.Parameter) -> bool:
    return parameter.ndim == 2 and "embed" not in name and "lm_head" not in name
