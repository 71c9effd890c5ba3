"""What tests of models share."""

import pytest

from stateatlas import compiler, kernels


@pytest.fixture(params=["torch", "compiled"])
def backend(request):
    """Both forms of the kernels, one after the other."""
    if request.param == "compiled" and not compiler.available():
        pytest.skip("there is no C compiler here")
    kernels.use(request.param)
    yield request.param
    kernels.use("torch")
