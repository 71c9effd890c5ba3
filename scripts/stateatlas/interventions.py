"""The names of all unit interventions and their spans (protocol C).

What a family has no meaning for is *not applicable* there.
"""

OF_STATE_SPACE = ("gate_zero", "gate_one", "gate_mean", "delta_zero", "delta_mean", "delta_shift")
OF_ATTENTION = ("output_mean", "uniform_attention")
NAMES = ("output_zero", *OF_STATE_SPACE, *OF_ATTENTION)
SPANS = ("all", "from_boundary")


def deciding(family: str) -> str:
    """Return the intervention that decides claims on sets of units. Attention heads have no gate."""
    return "output_zero" if family == "gpt_neox" else "gate_zero"
