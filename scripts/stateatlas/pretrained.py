"""Pretrained checkpoints: from a hub id or a directory to a local directory, and what lies in it.

Code of a checkpoint is never run, and a pickle is read as bare tensors or not at all. Only `download`, and `local`
with a hub id that is not in the cache yet, need the network.
"""

import hashlib
import json
import re
import shutil
from pathlib import Path

from stateatlas import mamba_ssm_format
from stateatlas.canonical import sha256_file
from stateatlas.job import InputError

HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")
COMMIT = re.compile(r"[0-9a-f]{40}")
VOCABULARIES = ("tokenizer.json", "vocab.json", "tokenizer.model")
PLAIN = ["*.json", "*.txt", "*.model", "*.safetensors"]  # files that are data and nothing else


def local(place: str | Path, revision: str | None = None) -> Path:
    """Return the directory of a checkpoint: `place` itself, or the hub's snapshot of it in the user's cache.

    Raises
    ------
    InputError
        If `place` is neither, has no pinned revision, or cannot be fetched.
    """
    if Path(place).is_dir():
        if revision is not None:
            raise InputError(f"{place} is a directory, which has no revision: leave out revision {revision!r}")
        return Path(place)
    if not HUB_ID.fullmatch(str(place)):
        raise InputError(f"{place}: no such directory; give a directory or a hub id such as EleutherAI/pythia-160m")
    return _snapshot(str(place), revision)


def download(hub_id: str, revision: str, folder: Path) -> dict[str, str]:
    """Fetch a checkpoint from the hub into `folder` and return {file: sha256}.

    Pickles are left out where the weights are there as safetensors too.

    Raises
    ------
    InputError
        If the revision is not pinned, if the hub cannot be reached or does not have it, or if a file is not the one
        that the hub names.
    """
    _snapshot(hub_id, revision, local_dir=folder)
    for path in sorted(folder.iterdir()):
        if path.is_file() and not _is_the_hubs(path):
            raise InputError(f"{hub_id} at {revision}: {path.name} is not what the hub's checksum says; fetch it again")
    shutil.rmtree(folder / ".cache", ignore_errors=True)  # the client's notes, with times
    return {path.name: sha256_file(path) for path in sorted(folder.iterdir()) if path.is_file()}


def fetch(place: str, revision: str | None, folder: Path) -> None:
    """Put the checkpoint at `place`, a hub id or a directory, into `folder`.

    Raises
    ------
    InputError
        As `local` and `download` do.
    """
    if Path(place).is_dir():
        shutil.copytree(local(place, revision), folder)
    else:
        download(place, revision, folder)


def _snapshot(hub_id: str, revision: str | None, **where) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    if not COMMIT.fullmatch(str(revision)):
        raise InputError(
            f"{hub_id}: no such directory, and as a hub id it needs a revision of 40 hex digits, not {revision!r}: "
            f"copy the commit from https://huggingface.co/{hub_id}/commits/main"
        )

    def fetch(patterns: list[str]) -> Path:
        wanted = {"allow_patterns": patterns, "ignore_patterns": ["*/*"]}
        return Path(snapshot_download(hub_id, revision=revision, **wanted, **where))

    try:
        folder = fetch(PLAIN)
        return folder if any(folder.glob("*.safetensors")) else fetch([*PLAIN, mamba_ssm_format.WEIGHTS])
    except LocalEntryNotFoundError as error:
        raise InputError(
            f"{hub_id} at {revision}: the hub cannot be reached (or HF_HUB_OFFLINE is set) and it is not in the cache; "
            "fetch it on a machine with a network, or give a directory"
        ) from error
    except HfHubHTTPError as error:
        raise InputError(f"{hub_id} at {revision}: {error}; check the id and the revision") from error


def _is_the_hubs(path: Path) -> bool:
    """Whether a downloaded file has the checksum by which the hub knows it; the client itself compares sizes alone.

    The hub's ETag is the SHA-256 of a large file and Git's blob id (SHA-1) of any other.
    """
    from huggingface_hub._local_folder import read_download_metadata  # where the client leaves the ETag

    etag = read_download_metadata(path.parent, path.name).etag
    if len(etag) == hashlib.sha256().digest_size * 2:
        return etag == sha256_file(path)
    blob = path.read_bytes()
    return etag == hashlib.sha1(b"blob %d\0" % len(blob) + blob, usedforsecurity=False).hexdigest()


def read(folder: Path) -> tuple[dict, dict | None]:
    """Return the config of a checkpoint, as `transformers` would have it, and its weights by name.

    Weights are None where `transformers` can read them from the directory itself.

    Raises
    ------
    InputError
        If the directory is not a checkpoint, or one that only a pickle could be read from.
    """
    file = folder / "config.json"
    try:
        settings = json.loads(file.read_text(encoding="utf-8"), object_hook=_infinity)
    except FileNotFoundError as error:
        raise InputError(f"{folder}: no config.json; give the directory of a checkpoint") from error
    except ValueError as error:
        raise InputError(f"{file} is not JSON ({error}); fetch the checkpoint again") from error
    if "model_type" not in settings and "d_model" in settings:
        return mamba_ssm_format.read(folder, settings)
    if not any(folder.glob("*.safetensors")):
        raise InputError(
            f"{folder}: no model.safetensors, and pickled weights are not loaded; "
            "choose a revision with safetensors, or convert the checkpoint with save_pretrained where you trust it"
        )
    return settings, None


def _infinity(item: dict) -> dict | float:
    """Return what `transformers` writes for an infinite number as that number."""
    return float(item["__float__"]) if item.keys() == {"__float__"} else item


def tokenizer(place: str | Path, revision: str | None = None):
    """Return the tokenizer of `transformers` that lies with a checkpoint.

    Raises
    ------
    InputError
        If there is none.
    """
    from transformers import AutoTokenizer

    folder = local(place, revision)
    try:
        if not any((folder / name).exists() for name in VOCABULARIES):  # it would make one that knows no token
            raise FileNotFoundError(f"no {', '.join(VOCABULARIES)}")
        return AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError, KeyError) as error:
        raise InputError(
            f"{folder}: no tokenizer that can be read ({str(error).splitlines()[0]}); "
            "put the model's tokenizer.json there, or name the place of its tokenizer"
        ) from error
