"""Updates of a model's weights from a batch, whatever part of it fits into memory at a time."""

import logging
from collections.abc import Callable

import torch
from torch import nn

log = logging.getLogger(__name__)

# A share of a loss: rows -> what these rows add to the loss, and sums over them that the caller wants to know.
Share = Callable[[slice], tuple[torch.Tensor, ...]]


class Descent:
    """AdamW on a model. `state()` and `restore()` are what a checkpoint holds.

    A batch that a GPU's memory is too small for is run in two parts, four, ...: their gradients add up to that of the
    batch, so the result is the same to rounding.
    """

    def __init__(self, model: nn.Module, recipe):
        self.model, self.clip, self.parts = model, recipe.clip, 1
        self.optimiser = adamw(model, recipe)

    def update(self, rate: float, *losses: tuple[Share, int]) -> list[list[torch.Tensor]]:
        """Make one update at the learning rate `rate`, with the gradient's norm clipped.

        losses: {share, number of rows} each; the loss is the sum of the shares of all rows. Returns, for every one,
        the sums of what its share returned.
        """
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        while (sums := self._gradients(losses)) is None:
            self.parts *= 2
            torch.cuda.empty_cache()
            log.warning("the GPU's memory is not enough for a whole batch: going on with %d parts of it", self.parts)
        nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.optimiser.step()
        return sums

    def _gradients(self, losses: tuple[tuple[Share, int], ...]) -> list[list[torch.Tensor]] | None:
        """Compute the gradient of the whole batch; None where the memory is not enough for the parts it is run in."""
        self.optimiser.zero_grad()
        try:
            return [self._summed(share, rows) for share, rows in losses]
        except torch.OutOfMemoryError:
            if self.parts >= max(rows for _, rows in losses):
                raise
        return None  # only here is what the failed attempt held given back

    def _summed(self, share: Share, rows: int) -> list[torch.Tensor]:
        size = -(-rows // self.parts)
        found = []
        for start in range(0, rows, size):
            loss, *noted = share(slice(start, min(start + size, rows)))
            loss.backward()
            found.append([loss.detach(), *noted])
        return [sum(parts[1:], start=parts[0]) for parts in zip(*found, strict=True)]

    def state(self) -> dict:
        return {"model": self.model.state_dict(), "optimiser": self.optimiser.state_dict()}

    def restore(self, state: dict) -> None:
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])


def adamw(model: nn.Module, recipe) -> torch.optim.AdamW:
    """Return AdamW; weight decay on matrices only, not on embeddings, norms, biases, A, D or Δ."""
    embeddings = {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding)}
    decayed, free = [], []
    for name, parameter in model.named_parameters():
        matrix = parameter.ndim > 1 and id(parameter) not in embeddings and "A_log" not in name
        (decayed if matrix else free).append(parameter)
    groups = [{"params": decayed, "weight_decay": recipe.weight_decay}, {"params": free, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=recipe.learning_rate, betas=recipe.betas, fused=True)
