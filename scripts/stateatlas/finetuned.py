"""Fine-tuned language models: a pretrained backbone that reads a formal task, and a new linear head (protocol A).

The symbols of a task are fixed single tokens of the model's vocabulary, never text that is tokenised again. `<bos>` is
not put in front: a model is tuned on the same sequences as the formal models are trained on.
"""

from pathlib import Path

import torch
from torch import nn

from stateatlas import adapters, pretrained
from stateatlas.adapters import Adapter
from stateatlas.job import InputError
from stateatlas.residual import Residual

DIGITS = "0123456789"
MIXED = ("cuda",)  # devices that train in bfloat16 where it is precise enough


class FineTuned(Residual):
    """A backbone that reads `symbols[token]` for every token of the task, and classes at every position.

    adapter: the backbone; it loses its language-model head. symbols: an id of its vocabulary for every token of the
    task. The head reads what the language-model head would have read, after the model's own final norm.
    """

    def __init__(self, adapter: Adapter, symbols: list[int], classes: int):
        super().__init__()
        self.adapter = adapter
        adapter.hub.lm_head = nn.Identity()  # nothing reads it, and tied weights could not be saved by name
        self.register_buffer("symbols", torch.tensor(symbols))
        self.head = nn.Linear(adapter.width, classes)
        self.depth, self.width = adapter.depth, adapter.width

    @property
    def config(self) -> dict:
        """What `config.json` of the saved model holds: the backbone's own, and what is added to it."""
        own = self.adapter.hub.config.to_dict()
        made = ("_name_or_path", "transformers_version")  # where it was made says nothing about it
        added = {"symbols": self.symbols.tolist(), "classes": self.head.out_features}
        return {key: value for key, value in own.items() if key not in made} | {"fine_tuning": added}

    def embed(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.adapter.embed(self.symbols[tokens])

    def block(self, index: int, stream: torch.Tensor) -> torch.Tensor:
        return self.adapter.block(index, stream)

    def read(self, stream: torch.Tensor) -> torch.Tensor:
        return self.head(self.adapter.norm(stream))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        # Only while it is trained: everything that is measured, the stop included, is measured in float32.
        with torch.autocast(tokens.device.type, torch.bfloat16, enabled=self.training and tokens.device.type in MIXED):
            return super().forward(tokens).float()


def build(
    place: str | Path, texts: str, classes: int, seed: int, revision: str | None = None, words: str | Path | None = None
) -> FineTuned:
    """Return a model ready to be tuned.

    place, revision: the checkpoint (see `adapters.load`). texts: a character for every token of the task (see
    `task_symbols`). seed: decides the new head. words: where the tokenizer lies, if not with the checkpoint.

    Raises
    ------
    InputError
        If the checkpoint or its tokenizer cannot be loaded, or a character is no single token of it.
    """
    adapter = adapters.load(place, revision)
    tokenizer = pretrained.tokenizer(place, revision) if words is None else pretrained.tokenizer(words)
    symbols = symbol_ids(tokenizer, texts)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = FineTuned(adapter, symbols, classes)
    return model.requires_grad_(True).train()


def from_config(config: dict, folder: Path) -> FineTuned:
    """Return a model without its weights, given what `config.json` in `folder` holds."""
    backbone = {key: value for key, value in config.items() if key != "fine_tuning"}
    return FineTuned(adapters.build(backbone, folder), **config["fine_tuning"])


def task_symbols(task) -> str:
    """Return a character for every token of a task: its own `symbols` (Dyck: `([)]`), or else the digits from 0 on."""
    return getattr(task, "symbols", DIGITS[: task.vocabulary])


def symbol_ids(tokenizer, texts: str) -> list[int]:
    """Return the id of every character as a token by itself, without a space before it.

    A tokenizer that knows a character only as the byte `<0x..>` gives that byte.

    Raises
    ------
    InputError
        If the tokenizer has no such token.
    """
    known = tokenizer.get_vocab()
    ids = []
    for text in texts:
        token = next((t for t in (text, f"<0x{ord(text):02X}>") if t in known), None)
        if token is None:
            raise InputError(
                f"{tokenizer.name_or_path}: its vocabulary has no token {text!r}, which stands for a symbol of the "
                "task; choose a model whose tokenizer has it"
            )
        ids.append(known[token])
    return ids
