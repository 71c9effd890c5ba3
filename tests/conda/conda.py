#!/usr/bin/env python3
"""A test double of conda: what Snakemake asks of it, over py-rattler and a channel in a local folder.

It is no conda. Channels are folders of `$LOCAL_CHANNELS`, environments are solved and linked by py-rattler as real ones
are, their `pip:` sections are installed by pip.
"""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import rattler
import yaml

BASE = Path(sys.argv[0]).resolve().parents[1]  # this file is bin/conda


def main(command: list[str]) -> None:
    match command:
        case ["--version"]:
            print("conda 24.7.1")
        case ["info", "--json"]:
            print(json.dumps({"conda_prefix": str(BASE), "platform": "linux-64", "conda_version": "24.7.1"}))
        case ["config", "--get", "channel_priority", "--json"]:
            print(json.dumps({"get": {"channel_priority": "strict"}}))
        case ["env", "create", "--quiet", "--no-default-packages", "--file", file, "--prefix", prefix]:
            create(yaml.safe_load(Path(file).read_text()), Path(prefix))
        case ["clean", "-y", "--tarballs"]:
            pass
        case _:
            sys.exit(f"conda (test double): not known: {' '.join(command)}")


def create(environment: dict, prefix: Path) -> None:
    channels = [f"file://{os.environ['LOCAL_CHANNELS']}/{name}" for name in environment["channels"]]
    specs = [part for part in environment["dependencies"] if isinstance(part, str)]
    pins = [pin for part in environment["dependencies"] if isinstance(part, dict) for pin in part["pip"]]

    async def linked() -> None:
        records = await rattler.solve(channels, specs, platforms=["linux-64", "noarch"])
        await rattler.install(records, target_prefix=prefix, show_progress=False, cache_dir=BASE / "pkgs")

    asyncio.run(linked())
    pip = [sys.executable, "-m", "pip", "--python", prefix / "bin" / "python", "install", "--quiet"]
    subprocess.run([*map(str, pip), *pins], check=True)


main(sys.argv[1:])
