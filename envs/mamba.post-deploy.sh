#!/bin/sh
# Builds the authors' kernels against the environment's own torch: needs the CUDA toolkit (nvcc) that this torch was
# built with. Not run where the project is tested, which has no GPU.
set -eu
python -c 'import sys, torch; sys.exit(None if torch.version.cuda else "envs/mamba.yaml: pip brought a torch without CUDA; run `CONDA_OVERRIDE_CUDA=12.8 ./reproduce --conda-create-envs-only ...`, or make the environment on a machine with a GPU")'
pip install --no-build-isolation --no-deps \
    mamba-ssm==2.3.2.post1 \
    causal-conv1d==1.7.0
