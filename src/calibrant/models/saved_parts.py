"""Encoder and network of a model as files: weights as safetensors, the rest as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from calibrant.calibrators.base.registry import list_methods
from calibrant.data.encoders.image_encoder import ImageEncoder
from calibrant.data.encoders.subword_encoder import SubwordEncoder
from calibrant.data.encoders.table_encoder import TableEncoder
from calibrant.data.encoders.text_encoder import TextEncoder
from calibrant.data.model_inputs import Encoder
from calibrant.errors import InputError, MissingExtra
from calibrant.models.options import plain
from calibrant.models.registry import build, models

WEIGHTS = "model.safetensors"
TOKENIZER = "tokenizer.json"


def config_of(model: nn.Module) -> dict[str, Any]:
    """Return what a registered network is rebuilt from; refuse one that cannot be."""
    config = getattr(model, "config", None)
    if not isinstance(config, Mapping) or "model" not in config:
        raise InputError(
            f"the network {type(model).__name__} has no config, so it cannot be saved: list its "
            "class with calibrant.models.register and give it a config."
        )
    return dict(plain(config))


def networks_of(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the networks that a config is about: its own, or those it averages.

    Examples
    --------
    >>> member = {"model": "mlp", "n_features": 3, "n_classes": 2}
    >>> networks_of({"model": "ensemble", "members": [member, member]})
    ('mlp', 'mlp')
    """
    inner = _averaged(config)
    if not inner:
        return (str(config.get("model")),)
    return tuple(name for part in inner for name in networks_of(part))


def module_of(model: nn.Module) -> str:
    """Return the module that registers a network; for an average, the first external one."""
    config = config_of(model)
    known = models()
    modules = [type(model).__module__]
    modules += [known[name].__module__ for name in networks_of(config) if name in known]
    external = (name for name in modules if not name.startswith("calibrant."))
    return next(external, modules[0])


def _averaged(config: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the configs of the networks that an ensemble or MC dropout averages."""
    name = config.get("model")
    if name == "mc_dropout":
        return [config["member"]]
    return list(config["members"]) if name == "ensemble" else []


def device_named(device: str) -> torch.device:
    """Parse "auto", "cpu", "cuda" or "cuda:1"; an unavailable GPU raises `InputError`."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    kind, _, number = str(device).partition(":")
    if kind not in ("cpu", "cuda") or (number and not number.isdigit()):
        raise InputError(f"device must be 'auto', 'cpu', 'cuda' or 'cuda:1', got {device!r}.")
    available = torch.cuda.device_count()
    if kind == "cuda" and int(number or 0) >= available:
        raise InputError(
            f"device {device!r} is not available, torch sees {available} GPUs: choose 'auto' or "
            "'cpu'."
        )
    return torch.device(device)


def write_network(model: nn.Module, folder: Path, prefix: str = "") -> None:
    """Write the weights of a network."""
    try:
        from safetensors import SafetensorError
        from safetensors.torch import save_file
    except ImportError:
        raise MissingExtra("a bundle with a model", "torch") from None
    weights = {name: part.detach().cpu().contiguous().clone() for name, part in _state(model)}
    try:
        save_file(weights, folder / f"{prefix}{WEIGHTS}")
    except SafetensorError as error:  # it has no other word for a full disk
        raise InputError(
            f"{WEIGHTS} cannot be written ({_reason(error)}): make room, or choose another folder."
        ) from error
    (folder / f"{prefix}{WEIGHTS}").chmod(0o644)  # for others to read, as all files beside it


def read_network(spec: Mapping[str, Any], folder: Path, prefix: str = "") -> nn.Module:
    """Build the network that a manifest describes, with the weights of the folder."""
    config = spec["model"]
    for name in dict.fromkeys((config.get("model"), *networks_of(config))):
        _check_known(name, spec.get("module"))
    weights = _read_weights(folder / f"{prefix}{WEIGHTS}")
    with torch.random.fork_rng(devices=[]):  # first weights are thrown away: leave no trace
        network = build(config)
    _check_weights(network, weights)
    network.load_state_dict(weights)
    return network


def write_encoder(encoder: Encoder, folder: Path, prefix: str = "") -> dict[str, Any]:
    """Return an encoder as JSON; a tokenizer goes into a file of its own.

    That file is as the tokenizers and transformers libraries read it.
    """
    saved = encoder.to_dict()
    if "tokenizer" in saved:
        learned = json.dumps(saved.pop("tokenizer"), ensure_ascii=False)
        (folder / f"{prefix}{TOKENIZER}").write_text(f"{learned}\n", encoding="utf-8")
    return saved


def read_encoder(spec: Mapping[str, Any], folder: Path, prefix: str = "") -> Encoder:
    """Rebuild an encoder from what `write_encoder` returned and wrote."""
    if spec["input"] == "table":
        return TableEncoder.from_dict(spec["encoder"])
    if spec["input"] == "image":
        return ImageEncoder.from_dict(spec["encoder"])
    if spec["input"] != "text":
        raise InputError(f"a model must read 'text', 'table' or 'image', got {spec['input']!r}.")
    try:
        text = (folder / f"{prefix}{TOKENIZER}").read_text(encoding="utf-8")
        return _text_encoder({**spec["encoder"], "tokenizer": json.loads(text)})
    except MissingExtra:
        raise
    except Exception as error:  # the tokenizers library raises bare exceptions
        raise InputError(
            f"{TOKENIZER} is damaged ({_reason(error)}): pack it again, or get a fresh copy."
        ) from error


def _text_encoder(saved: Mapping[str, Any]) -> TextEncoder | SubwordEncoder:
    """Rebuild one of both; the tokenizer is made here, and can fail here."""
    if saved.get("kind") == "subword":
        pieces = SubwordEncoder.from_dict(saved)
        pieces.check()
        return pieces
    words = TextEncoder.from_dict(saved)
    _ = words.words
    return words


def _state(model: nn.Module) -> list[tuple[str, Tensor]]:
    return [(name, part) for name, part in model.state_dict().items() if isinstance(part, Tensor)]


def _read_weights(path: Path) -> dict[str, Tensor]:
    try:
        from safetensors import SafetensorError
        from safetensors.torch import load_file
    except ImportError:
        raise MissingExtra("a bundle with a model", "torch") from None
    try:
        return dict(load_file(path))
    except (OSError, ValueError, SafetensorError) as error:
        raise InputError(
            f"{path.name} is damaged ({_reason(error)}): pack it again, or get a fresh copy."
        ) from error


def _check_known(name: Any, module: Any) -> None:
    """Refuse a network that nobody registered here, and name what would."""
    if name in models():
        return
    list_methods()  # imports the packages of the group calibrant.plugins, whatever they register
    if name in models():
        return
    raise InputError(
        f"the network {name!r} is not known here: it is registered by the module {module!r}, so "
        "install its package and import that module first."
    )


def _check_weights(network: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Refuse weights that are not those of the network, by the first that differs."""
    wanted = dict(_state(network))
    odd = [name for name in (*wanted, *weights) if (name in wanted) != (name in weights)]
    if odd:
        which = "lacks" if odd[0] in wanted else "has"
        other = "has" if odd[0] in wanted else "lacks"
        raise InputError(
            f"{WEIGHTS} is of another network: it {which} {odd[0]!r}, which the manifest's {other}."
        )
    for name, part in wanted.items():
        if part.shape != weights[name].shape:
            raise InputError(
                f"{WEIGHTS} is of another network: {name!r} has shape "
                f"{tuple(weights[name].shape)}, the manifest's network needs {tuple(part.shape)}."
            )


def _reason(error: Exception) -> str:
    text = str(error).strip().rstrip(".").partition("\n")[0]
    return text[:120] or type(error).__name__
