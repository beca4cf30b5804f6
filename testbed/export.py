"""Write models as the folders an engine loads: config.json, model.safetensors, tokenizer files.

Weights are stored as bfloat16 and rounded to it in training's last step, so a float32 engine runs exactly what was
trained.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import nn

from testbed.drafter import TARGET_LAYERS, Kind
from testbed.layers import Shape
from testbed.tokenizer import CHAT_TEMPLATE, END, END_OF_TEXT, MASK, SPECIALS

SUMS = "SHA256SUMS"


def config(shape: Shape, tokenizer: Tokenizer) -> dict[str, Any]:
    """What target and drafters have in common."""
    return {
        "model_type": "qwen3",
        "vocab_size": shape.vocab,
        "hidden_size": shape.hidden,
        "intermediate_size": shape.intermediate,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "hidden_act": "silu",
        "max_position_embeddings": shape.max_positions,
        "rms_norm_eps": shape.eps,
        "rope_parameters": {"rope_type": "default", "rope_theta": shape.rope_theta},
        "attention_bias": False,
        "tie_word_embeddings": False,
        "dtype": "float32",
        "eos_token_id": tokenizer.token_to_id(END),
        "pad_token_id": tokenizer.token_to_id(END_OF_TEXT),
    }


def draft_config(shape: Shape, tokenizer: Tokenizer, kind: Kind) -> dict[str, Any]:
    """A DFlash drafter's config; a window on a layer makes it `sliding_attention`."""
    windows = [window for window in kind.windows if window is not None]
    own = {
        "architectures": ["DFlashDraftModel"],
        "num_hidden_layers": len(kind.windows),
        "num_target_layers": shape.layers,
        "layer_types": ["full_attention" if window is None else "sliding_attention" for window in kind.windows],
        "use_sliding_window": bool(windows),
        "sliding_window": windows[0] if windows else None,
        "dflash_config": {
            "mask_token_id": tokenizer.token_to_id(MASK),
            "target_layer_ids": list(TARGET_LAYERS),
            "causal": kind.causal,
        },
    }
    return config(shape, tokenizer) | own


def write_target(folder: Path, model: nn.Module, shape: Shape, tokenizer: Tokenizer) -> None:
    """The target's folder, with tokenizer and generation config."""
    weights = {name if name.startswith("lm_head") else f"model.{name}": w for name, w in model.state_dict().items()}
    own = config(shape, tokenizer) | {"architectures": ["Qwen3ForCausalLM"]}
    write_model(folder, weights, own)
    write_tokenizer(folder, tokenizer, shape.max_positions)
    ends = [tokenizer.token_to_id(END), tokenizer.token_to_id(END_OF_TEXT)]
    write_json(folder / "generation_config.json", {"eos_token_id": ends, "do_sample": False})


def write_drafter(
    folder: Path, weights: dict[str, torch.Tensor], shape: Shape, tokenizer: Tokenizer, kind: Kind
) -> None:
    """A drafter's folder; embedding and head are the target's unless `weights` brings its own."""
    write_model(folder, weights, draft_config(shape, tokenizer, kind))


def write_model(folder: Path, weights: dict[str, torch.Tensor], own_config: dict[str, Any]) -> None:
    """config.json and model.safetensors."""
    folder.mkdir(parents=True, exist_ok=True)
    contiguous = {name: tensor.detach().to(torch.bfloat16).contiguous() for name, tensor in sorted(weights.items())}
    file = folder / "model.safetensors"
    save_file(contiguous, file, metadata={"format": "pt"})
    file.chmod(0o644)
    write_json(folder / "config.json", own_config)


def write_tokenizer(folder: Path, tokenizer: Tokenizer, max_length: int) -> None:
    """tokenizer.json and its config with the chat template."""
    tokenizer.save(str(folder / "tokenizer.json"))
    own = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "chat_template": CHAT_TEMPLATE,
        "eos_token": END,
        "pad_token": END_OF_TEXT,
        "additional_special_tokens": list(SPECIALS),
        "clean_up_tokenization_spaces": False,
        "model_max_length": max_length,
    }
    write_json(folder / "tokenizer_config.json", own)


def write_json(file: Path, content: dict[str, Any]) -> None:
    """Indented JSON, as text."""
    file.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


@torch.no_grad()
def round_weights(model: nn.Module) -> None:
    """Round every weight to what bfloat16 can hold, in place."""
    for parameter in model.parameters():
        parameter.copy_(parameter.to(torch.bfloat16).float())


def write_sums(root: Path) -> None:
    """SHA256SUMS over every file below `root`, in the format of sha256sum."""
    files = sorted(file for file in root.rglob("*") if file.is_file() and file.name != SUMS)
    lines = [f"{sha256(file)}  {file.relative_to(root).as_posix()}" for file in files]
    (root / SUMS).write_text("\n".join(lines) + "\n", encoding="utf-8")


def sha256(file: Path) -> str:
    """The sha256 of a file, in hex."""
    return hashlib.sha256(file.read_bytes()).hexdigest()
