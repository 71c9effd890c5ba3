"""Adapters: language models of `transformers` as residual models, one family per file.

An adapter module `adapters/<family>.py`, named like the `model_type` of its checkpoints, defines a class
`Model(Adapter)` with

- `Hub`: the class of `transformers` that holds the parameters;
- `embed`, `block` (see `Residual`) and `norm`, the norm in front of the language-model head;
- `blocks`: the blocks of the hub's model;
- `attends`: whether they hold an attention;
- `supported`, where not every value of a field of its config can be computed: the values that can, by field;
- `use_backend(backend)`, only where there is a choice: `kernels.use`.

Sequences of a batch may be padded on the right, which changes nothing before the padding. There is no attention mask
and so no padding on the left. `<bos>` is a token like any other: it is neither added nor taken away.
"""

import importlib
from pathlib import Path
from typing import ClassVar

import torch
from torch import nn

from stateatlas import pretrained
from stateatlas.job import InputError
from stateatlas.residual import Residual

FAMILIES = ("gpt2", "gpt_neox", "llama", "mamba", "mamba2")


class Adapter(Residual):
    """A language model whose logits, (batch, length, vocabulary), are those of `hub`, to rounding.

    All parameters are float32, so a stream that the checkpoint wants in float32 (`residual_in_fp32`) is. There is no
    dropout, in training neither: the same seed gives the same weights.
    """

    Hub: type[nn.Module]
    attends: bool
    supported: ClassVar[dict[str, tuple]] = {}

    def __init__(self, hub: nn.Module):
        super().__init__()
        self.hub = hub
        self.family = hub.config.model_type
        self.depth, self.width = len(self.blocks), hub.config.hidden_size

    @property
    def blocks(self) -> nn.ModuleList:
        raise NotImplementedError

    def norm(self, stream: torch.Tensor) -> torch.Tensor:
        """Return the stream of the last site as the head sees it."""
        raise NotImplementedError

    def read(self, stream: torch.Tensor) -> torch.Tensor:
        return self.hub.lm_head(self.norm(stream))


def load(place: str | Path, revision: str | None = None, attention: str = "sdpa") -> Adapter:
    """Return the language model at `place`, for evaluation.

    place: a directory in the format of `transformers` (safetensors) or of `mamba_ssm`, or a hub id; then revision is
    the commit, 40 hex digits. attention, where there is any: "sdpa", or "math", slower, which can be differentiated
    forward too and keeps all digits where the model is converted to float64.

    Raises
    ------
    InputError
        If the checkpoint cannot be had, is incomplete, or is of a kind that there is no adapter for.
    """
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()  # a log is no terminal
    folder = pretrained.local(place, revision)
    settings, weights = pretrained.read(folder)
    family = _family(settings, folder)
    config = _config(family, settings, folder)
    try:
        hub, report = family.Hub.from_pretrained(
            None if weights else folder, config=config, state_dict=weights, dtype=torch.float32,
            attn_implementation=attention if family.attends else None, use_safetensors=True, local_files_only=True,
            output_loading_info=True, ignore_mismatched_sizes=True,
        )  # fmt: skip
    except Exception as error:  # whatever a damaged file leads to
        raise InputError(f"{folder}: the weights cannot be read ({error}); fetch the checkpoint again") from error
    _check_complete(report, folder)
    return family(hub).eval().requires_grad_(False)


def build(settings: dict, place: Path) -> Adapter:
    """Return a model with new weights, given what its `config.json` in the folder `place` holds."""
    from transformers import AutoModelForCausalLM

    family = _family(settings, place)
    return family(AutoModelForCausalLM.from_config(_config(family, settings, place), dtype=torch.float32))


def empty(settings: dict, place: Path) -> Adapter:
    """Return the same with its weights still to be loaded."""
    from transformers.initialization import no_init_weights

    with no_init_weights():  # drawing them takes longer than loading
        return build(settings, place)


def use_backend(family: str, backend: str | None) -> None:
    """Choose the form of the family's recurrences, "compiled" or "torch", for this process."""
    if (choose := getattr(_module(family).Model, "use_backend", None)) is not None:
        choose(backend)


def _module(family: str):
    # Loaded by name, so that the code of one family is not part of another's results.
    return importlib.import_module(f"stateatlas.adapters.{family}")


def _family(settings: dict, folder: Path) -> type[Adapter]:
    name = settings.get("model_type")
    if name not in FAMILIES:
        raise InputError(
            f"{folder / 'config.json'}: model_type {name!r} has no adapter; choose a model of {', '.join(FAMILIES)}"
        )
    return _module(name).Model


def _config(family: type[Adapter], settings: dict, folder: Path):
    file = folder / "config.json"
    try:
        config = family.Hub.config_class.from_dict(settings)
    except Exception as error:  # its checks raise errors of several kinds
        raise InputError(f"{file}: {error}; fetch the checkpoint again") from error
    for field, values in family.supported.items():
        if (value := getattr(config, field)) not in values:
            known = " or ".join(map(repr, values))
            raise InputError(f"{file}: {field} {value!r} is not supported; choose a model with {field} {known}")
    for field in config.to_dict():
        if field.endswith(("dropout", "pdrop")):
            setattr(config, field, 0.0)
    return config


def _check_complete(report: dict, folder: Path) -> None:
    for key, problem in (
        ("missing_keys", "has no"),
        ("unexpected_keys", "has too many weights for its config.json:"),
        ("mismatched_keys", "does not have the shape that its config.json says in"),
    ):
        if found := sorted(str(k if isinstance(k, str) else k[0]) for k in report[key]):
            more = f" and {len(found) - 3} more" if len(found) > 3 else ""
            raise InputError(f"{folder}: {problem} {', '.join(found[:3])}{more}; fetch the checkpoint again")
