"""A channel in a local folder with what the environments ask of it: Python, a link to the one at hand, and pip."""

import asyncio
import json
import sys
import tarfile
import tempfile
from pathlib import Path

import rattler.index

VERSION = ".".join(map(str, sys.version_info[:3]))


def make(folder: Path) -> None:
    """Write the packages and the channel's index."""
    real = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
    with tempfile.TemporaryDirectory() as place:
        # With the configuration file the prefix is a virtual environment: it finds its own packages alone.
        config = Path(place, "pyvenv.cfg")
        config.write_text(f"home = {real.parent}\ninclude-system-site-packages = false\nversion = {VERSION}\n")
        links = {f"bin/{name}": real for name in ("python", "python3", real.name)}
        _package(folder / "linux-64", "python", VERSION, {"pyvenv.cfg": config}, links)
        _package(folder / "linux-64", "pip", "25.0", {}, {})
    (folder / "noarch").mkdir()
    asyncio.run(rattler.index.index_fs(folder))


def _package(folder: Path, name: str, version: str, files: dict[str, Path], links: dict[str, Path]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    paths = [{"_path": path, "path_type": "hardlink"} for path in files]
    paths += [{"_path": path, "path_type": "softlink"} for path in links]
    index = {"name": name, "version": version, "build": "0", "build_number": 0, "depends": [], "subdir": "linux-64"}
    said = {
        "index.json": json.dumps(index),
        "paths.json": json.dumps({"paths": paths, "paths_version": 1}),
        "files": "\n".join([*files, *links]),
    }
    with (
        tarfile.open(folder / f"{name}-{version}-0.tar.bz2", "w:bz2") as package,
        tempfile.TemporaryDirectory() as place,
    ):
        for file, text in said.items():
            Path(place, file).write_text(text)
            package.add(Path(place, file), f"info/{file}")
        for path, source in files.items():
            package.add(source, path)
        for path, target in links.items():
            link = tarfile.TarInfo(path)
            link.type, link.linkname = tarfile.SYMTYPE, str(target)
            package.addfile(link)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
