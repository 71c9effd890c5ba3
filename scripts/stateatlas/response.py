"""Linear response of a residual model (arXiv 2605.25225, setup): what a source in the stream does to the answer.

The stream is a field R(site, token). A source J is added to it at one site and token, and an observable y is a
difference of two logits at the last token. The sensitivity a(site, token) = dy/dR is the adjoint field: a small source
changes y by a.J. The Green function G = dR(later)/dR(earlier) carries a source on, and G(2;0) = G(2;1) G(1;0).

Streams are lists over sites of (1, length, width), as `states` of one prompt gives them. A *case* is a tuple of
sources that act together. Nothing here chooses a dtype: convert the model to float64 for anything linear.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import torch
from torch.func import jvp, vjp, vmap

from stateatlas.residual import Residual

CHUNK = 2048  # tokens that are run together: what they need stays in the processor's cache
TOGETHER = 32  # directions that are differentiated together: more leave the cache


@dataclass(frozen=True)
class Observable:
    """The logit of one token minus that of another."""

    right: int
    wrong: int

    def __call__(self, logits: torch.Tensor) -> torch.Tensor:
        """Return y, (...), of logits (..., vocabulary)."""
        return logits[..., self.right] - logits[..., self.wrong]


@dataclass(frozen=True)
class Source:
    """A vector, (width,), that is added to the stream at one site and token."""

    site: int
    token: int
    vector: torch.Tensor


@dataclass(frozen=True)
class Place:
    """A site and some of its tokens: one side of a Green block."""

    site: int
    tokens: tuple[int, ...]


Case = Sequence[Source]


def answers(model: Residual, stream: torch.Tensor) -> torch.Tensor:
    """Return the logits at the last token, (batch, vocabulary), of the stream at the last site."""
    return model.read(stream[:, -1:])[:, 0]


def sensitivity(
    model: Residual, tokens: torch.Tensor, observable: Observable, case: Case = ()
) -> tuple[float, torch.Tensor]:
    """Return y and a = dy/dR at every site and token, (sites, length, width): one forward and one backward pass.

    tokens: (length,) int64. With a case, both are those of the model with these sources in its stream.
    """
    stream = model.embed(tokens[None]).detach().requires_grad_()
    streams = [_with(stream, 0, [case])]
    for index in range(model.depth):
        streams.append(_with(model.block(index, streams[-1]), index + 1, [case]))
    y = observable(answers(model, streams[-1]))[0]
    return y.item(), torch.cat(torch.autograd.grad(y, streams))


@torch.no_grad()
def measured(
    model: Residual, clean: list[torch.Tensor], cases: Sequence[Case], reading: Callable[[torch.Tensor], torch.Tensor]
) -> torch.Tensor:
    """Return `reading` of the logits at the last token under every case, (cases, ...).

    Every case is run on from its lowest site, with as many others as fit into a chunk.
    """
    order = sorted(range(len(cases)), key=lambda i: _lowest([cases[i]]))
    together = max(1, CHUNK // clean[0].shape[1])
    found = [torch.empty(0)] * len(cases)
    for _, group in groupby(order, key=lambda i: _lowest([cases[i]])):
        members = list(group)
        for start in range(0, len(members), together):
            part = members[start : start + together]
            *_, (_, stream) = _run(model, clean, [cases[i] for i in part])
            for i, value in zip(part, reading(answers(model, stream)), strict=True):
                found[i] = value
    return torch.stack(found)


@torch.no_grad()
def response(model: Residual, clean: list[torch.Tensor], cases: Sequence[Case]) -> torch.Tensor:
    """Return the response field, patched minus clean stream, (cases, sites, length, width); 0 before the sources."""
    field = torch.zeros(len(cases), model.sites, *clean[0].shape[1:], dtype=clean[0].dtype, device=clean[0].device)
    for site, stream in _run(model, clean, cases):
        field[:, site] = stream - clean[site]
    return field


def push(model: Residual, clean: list[torch.Tensor], first: int, last: int, tangent: torch.Tensor) -> torch.Tensor:
    """Return G(last; first) times a field at the site `first`; both (length, width). One Jacobian-vector product."""
    return jvp(lambda stream: _on(model, stream, first, last), (clean[first],), (tangent[None],))[1][0]


def green(model: Residual, clean: list[torch.Tensor], source: Place, target: Place) -> torch.Tensor:
    """Return the Jacobian of the stream at `target` by that at `source`, (target, source); tokens vary slowest.

    Column by column (JVP) where the source has fewer tokens than the target, else row by row (VJP). What comes
    after the last target token is not run: no block looks ahead.
    """
    end = max(target.tokens) + 1
    here = [i for i in range(len(source.tokens)) if source.tokens[i] < end]
    places, aims = (torch.tensor(tokens, device=clean[0].device) for tokens in (source.tokens, target.tokens))
    stream = clean[source.site][:, :end]
    start = clean[source.site][0, places]  # (tokens, width)

    def respond(part: torch.Tensor) -> torch.Tensor:
        edited = stream.index_copy(1, places[here], part[None, here])
        return _on(model, edited, source.site, target.site)[0, aims]

    if len(source.tokens) < len(target.tokens):
        unit = torch.eye(start.numel(), dtype=start.dtype, device=start.device).view(-1, *start.shape)
        columns = vmap(lambda v: jvp(respond, (start,), (v,))[1], chunk_size=TOGETHER)(unit)
        return columns.flatten(1).T
    end_stream, pull = vjp(respond, start)
    unit = torch.eye(end_stream.numel(), dtype=start.dtype, device=start.device).view(-1, *end_stream.shape)
    return vmap(lambda v: pull(v)[0], chunk_size=TOGETHER)(unit).flatten(1)


def interaction(model: Residual, clean: list[torch.Tensor], observable: Observable, pair: tuple[Case, Case]) -> float:
    """Return the mixed second derivative of y by the strengths of two cases, at 0.

    To second order it is all that two sources together do beyond the sum of each: dy(J1 + J2) - dy(J1) - dy(J2).
    """
    strength = torch.zeros(2, dtype=clean[0].dtype, device=clean[0].device, requires_grad=True)
    case = [
        Source(source.site, source.token, strength[i] * source.vector) for i, part in enumerate(pair) for source in part
    ]
    *_, (_, stream) = _run(model, clean, [case])
    first = torch.autograd.grad(observable(answers(model, stream))[0], strength, create_graph=True)[0]
    return torch.autograd.grad(first[0], strength)[0][1].item()


def _lowest(cases: Sequence[Case]) -> int:
    return min(source.site for case in cases for source in case)


def _run(model: Residual, clean: list[torch.Tensor], cases: Sequence[Case]) -> Iterator[tuple[int, torch.Tensor]]:
    """Yield every site from the lowest source on, with its stream under every case, (cases, length, width)."""
    lowest = _lowest(cases)
    stream = clean[lowest].expand(len(cases), -1, -1)
    for site in range(lowest, model.sites):
        if site > lowest:
            stream = model.block(site - 1, stream)
        stream = _with(stream, site, cases)
        yield site, stream


def _with(stream: torch.Tensor, site: int, cases: Sequence[Case]) -> torch.Tensor:
    """Return the stream with every case's sources at this site added to its own row."""
    added = [(row, source) for row, case in enumerate(cases) for source in case if source.site == site]
    if not added:
        return stream
    rows = torch.tensor([row for row, _ in added], device=stream.device)
    tokens = torch.tensor([source.token for _, source in added], device=stream.device)
    return stream.index_put((rows, tokens), torch.stack([source.vector for _, source in added]), accumulate=True)


def _on(model: Residual, stream: torch.Tensor, first: int, last: int) -> torch.Tensor:
    for index in range(first, last):
        stream = model.block(index, stream)
    return stream
