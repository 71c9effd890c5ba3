"""The loss after a boundary token under an intervention (protocol C), over either of two spans.

A window is a text with a boundary token at `boundary` and the measured tokens after it. Under the span `all` the
intervention holds at every token, and blocks below the lowest edited one keep their clean streams. Under
`from_boundary` it holds from the boundary on: what the blocks know of the clean tokens before is kept too, and only
the tokens from the boundary on are run.
"""

import numpy as np
import torch

from stateatlas import units
from stateatlas.adapters import Adapter
from stateatlas.interventions import SPANS

CHUNK = 64  # windows
TOGETHER = 2048  # tokens that run at once under `all`: more do not fit the cache


class Windows:
    """Windows of a model, ready to be run under any intervention.

    tokens: (windows, length) int64, of which those after `boundary` are measured; means: see `units.intervened`.
    """

    def __init__(self, model: Adapter, tokens: np.ndarray, boundary: int, means: dict[int, units.Means]):
        self.model, self.boundary, self.means = model, boundary, means
        self.kind = units.family(model.family)
        device = next(model.parameters()).device
        self.tokens = torch.from_numpy(tokens).to(device)
        with torch.inference_mode():
            self.parts = [Part(self.kind, model, part, boundary) for part in self.tokens.split(CHUNK)]

    def loss(self, intervention: str = "", chosen: units.Units | None = None, span: str = "all") -> np.ndarray:
        """Return the nats a token of every window, (windows,) float64: the mean over its measured tokens.

        Without an intervention the model is as it is.
        """
        if not intervention:
            return self._losses(self.model.depth, span)
        lowest = min((block for block, units in chosen.items() if units), default=self.model.depth)
        with units.intervened(self.model, self.model.family, intervention, chosen, self.means):
            return self._losses(lowest, span)

    @torch.inference_mode()
    def _losses(self, lowest: int, span: str) -> np.ndarray:
        if span not in SPANS:
            raise ValueError(f"span {span!r}: it must be one of {', '.join(SPANS)}")
        run = Part.all if span == "all" else Part.from_boundary
        return np.concatenate([part.loss(run(part, lowest)) for part in self.parts])


class Part:
    """Some windows, with the clean stream at every site and what every block knows before the boundary."""

    def __init__(self, kind, model: Adapter, tokens: torch.Tensor, boundary: int):
        self.kind, self.model, self.boundary = kind, model, boundary
        self.aims = tokens[:, boundary + 1 :]
        self.streams = model.states(tokens)
        self.memories = [kind.remember(model, i, self.streams[i][:, :boundary]) for i in range(model.depth)]

    def all(self, lowest: int) -> torch.Tensor:
        """Return the stream at the last site from the boundary on, with every block from `lowest` on run again."""
        together = max(1, TOGETHER // self.streams[0].shape[1])
        return torch.cat([self._all(part, lowest) for part in self.streams[lowest].split(together)])

    def _all(self, stream: torch.Tensor, lowest: int) -> torch.Tensor:
        last = self.model.depth - 1
        if lowest > last:
            return stream[:, self.boundary :]
        for index in range(lowest, last):
            stream = self.model.block(index, stream)
        if not self.kind.REMEMBERS_CHEAPLY:
            return self.model.block(last, stream)[:, self.boundary :]
        # Of the last block's tokens before the boundary nothing is read but what the later ones know of them.
        memory = self.kind.remember(self.model, last, stream[:, : self.boundary])
        return self.kind.advance(self.model, last, stream[:, self.boundary :], memory)

    def from_boundary(self, lowest: int) -> torch.Tensor:
        """Return the same, run from the boundary on only."""
        stream = self.streams[lowest][:, self.boundary :]
        for index in range(lowest, self.model.depth):
            stream = self.kind.advance(self.model, index, stream, self.memories[index])
        return stream

    def loss(self, stream: torch.Tensor) -> np.ndarray:
        """Return the nats a token of every window."""
        logits = self.model.read(stream[:, :-1])
        losses = torch.nn.functional.cross_entropy(logits.flatten(0, 1), self.aims.flatten(), reduction="none")
        return losses.view(self.aims.shape).double().mean(dim=1).cpu().numpy()
