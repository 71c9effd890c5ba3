"""One prompt in one model: its streams, its sensitivities, and the sources that protocol B puts into them."""

from functools import cached_property

import numpy as np
import torch

from stateatlas.adapters import Adapter
from stateatlas.prompts import Prompt
from stateatlas.response import Observable, Source, measured, sensitivity

KINDS = ("random", "gradient", "prompt_difference", "unembedding_difference")


class Field:
    """The clean streams of a prompt and of its partner, y, and a = dy/dR.

    clean, other: a stream (1, length, width) a site; a: (sites, length, width); norms: |R|, (sites, length).
    """

    def __init__(self, model: Adapter, prompt: Prompt):
        device = next(model.parameters()).device
        self.model, self.prompt = model, prompt
        self.tokens, partner = prompt.tokens.to(device), prompt.partner.to(device)
        self.observable = Observable(prompt.right, prompt.wrong)
        with torch.no_grad():
            self.clean, self.other = model.states(self.tokens[None]), model.states(partner[None])
        self.y, self.a = sensitivity(model, self.tokens, self.observable)
        self.norms = torch.stack([stream[0].norm(dim=-1) for stream in self.clean])
        self.length, self.last = len(self.tokens), len(self.tokens) - 1

    @cached_property
    def shift(self) -> torch.Tensor:
        """The displacement to the partner, (sites, length, width)."""
        return torch.cat([there - here for here, there in zip(self.clean, self.other, strict=True)])

    @cached_property
    def scores(self) -> np.ndarray:
        """The size of the sensitivity, |a|, (sites, length)."""
        return self.a.norm(dim=-1).cpu().numpy()

    def effects(self, cases: list) -> np.ndarray:
        """Return dy of every case, (cases,): measured in the model, not predicted."""
        return (measured(self.model, self.clean, cases, self.observable) - self.y).cpu().numpy()

    def predicted(self, source: Source) -> float:
        """Return what the linear response says that a source does to y."""
        return (self.a[source.site, source.token] @ source.vector).item()

    def source(self, site: int, token: int, direction: torch.Tensor, eps: float) -> Source:
        """Return a source of `eps` times the norm of the stream there, along a unit vector."""
        return Source(site, token, eps * self.norms[site, token] * direction)

    def places(self, tokens: int, rng: np.random.Generator) -> list[tuple[int, int]]:
        """Draw that many tokens of every site, the last one always among them; of the final site only the last one
        feeds the answer."""
        found = []
        for site in range(self.model.sites - 1):
            drawn = rng.choice(self.last, size=min(tokens - 1, self.last), replace=False)
            found += [(site, int(token)) for token in sorted(drawn)] + [(site, self.last)]
        return [*found, (self.model.sites - 1, self.last)]

    def random(self, rng: np.random.Generator, number: int) -> torch.Tensor:
        """Draw unit vectors, (number, width)."""
        drawn = torch.from_numpy(rng.standard_normal((number, self.a.shape[-1]))).to(self.a)
        return drawn / drawn.norm(dim=-1, keepdim=True)

    def directions(self, site: int, token: int, number: int, rng: np.random.Generator) -> dict[str, torch.Tensor]:
        """Return the unit vectors of every kind at a place, (vectors, width); none where the kind vanishes there."""
        head = self.model.hub.lm_head.weight
        fixed = {
            "gradient": self.a[site, token],
            "prompt_difference": self.shift[site, token],
            "unembedding_difference": head[self.prompt.right] - head[self.prompt.wrong],
        }
        units = {kind: (vector / vector.norm())[None] for kind, vector in fixed.items() if vector.norm() > 0}
        return {"random": self.random(rng, number)} | units
