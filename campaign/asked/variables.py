"""The environment variables that an engine may be given: what reaches it, what the runner keeps, what is a secret."""

import re
from collections.abc import Collection
from typing import Any

from campaign.asked.confidential import has_password, sounds_secret
from campaign.asked.origins import quoting
from campaign.errors import ConfigError
from campaign.limits import NOT_NULL, near

RUNNERS = (  # set for every boot by the runner itself (engine/spec.py)
    "HOME",
    "TMPDIR",
    "PYTHONPATH",
    "PYTHONSAFEPATH",
    "SPT_NOENV",
    "CAMPAIGN_RUN_ID",
    "CAMPAIGN_BOOT_ID",
    "VLLM_CACHE_ROOT",
    "TRITON_CACHE_DIR",
    "TORCHINDUCTOR_CACHE_DIR",
)
RUNNERS_PREFIX = "VLLM_CAMPAIGN_"
LOG = "changes the log that the runner reads"
SERVER = "makes another server than the runner asks"
RANKS = "makes ranks that the runner does not ask"
KEPT = {  # what the runner relies on, and what each of these would do to it
    "PATH": "decides which programs the engine starts",
    "LANG": LOG,
    "LC_ALL": LOG,
    "VLLM_CONFIGURE_LOGGING": LOG,
    "VLLM_ENABLE_V1_MULTIPROCESSING": RANKS,
    "VLLM_KEEP_ALIVE_ON_ENGINE_DEATH": "hides that the engine died",
    "VLLM_MODEL_REDIRECT_PATH": "loads another model than model.target",
    "VLLM_PLUGINS": "can leave out the overlays' plugins",
    "VLLM_RUST_FRONTEND_PATH": SERVER,
    "VLLM_SERVER_DEV_MODE": "takes routes away that the runner asks",
    "VLLM_SKIP_MODEL_NAME_VALIDATION": "lets the engine answer to another boot's name",
    "VLLM_USE_MODELSCOPE": "loads models from another place",
    "VLLM_USE_RUST_FRONTEND": SERVER,
}
KEPT_PREFIXES = {  # the same for whole families
    "PYTHON": "changes the interpreter under the engine",
    "VLLM_DP_": RANKS,
    "VLLM_LOGGING_": LOG,
}
ENGINE_PREFIX = "VLLM_"
FAMILIES = (  # libraries below the engine; a profile may name their variables
    "CUDA_",
    "FLASHINFER_",
    "GLOO_",
    "GOMP_",
    "HF_",
    "KMP_",
    "MKL_",
    "NCCL_",
    "NVIDIA_",
    "OMP_",
    "OPENBLAS_",
    "PYTORCH_",
    "SAFETENSORS_",
    "TOKENIZERS_",
    "TORCH_",
    "TORCHINDUCTOR_",
    "TRANSFORMERS_",
    "TRITON_",
    "UCX_",
)
SINGLE = ("LD_LIBRARY_PATH", "LD_PRELOAD", "MALLOC_ARENA_MAX", "TZ")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
NOT_SHOWN = ("HF_", "TRANSFORMERS_")  # families whose values a record masks


def reaches_the_engine(name: str, known: Collection[str]) -> bool:
    """Whether a variable means something to this engine (`known`) or to a library below it."""
    return name in known or name in SINGLE or name.startswith(FAMILIES)


def may_show(name: str, value: str) -> bool:
    """Whether a record may hold what the shell has for a variable that is passed on; what is not known is masked."""
    known = name in SINGLE or name.startswith((ENGINE_PREFIX, *FAMILIES))
    return known and not name.startswith(NOT_SHOWN) and not sounds_secret(name) and not has_password(value)


def refuse(where: str, name: str, *, secret_too: bool = True) -> None:
    """Raises ConfigError for a name that is none, that is the runner's own, or whose value would stand in a record."""
    if not NAME.fullmatch(name):
        place = where.removesuffix(f".{name}")  # whatever it holds, a newline too
        raise ConfigError(f"{place}: {name!r} is no variable's name; wanted letters, digits and '_', no digit first")
    if name in RUNNERS or name.startswith(RUNNERS_PREFIX):
        raise ConfigError(f"{where}: the runner sets {name} itself for every boot; leave it out")
    reason = KEPT.get(name) or next((why for head, why in KEPT_PREFIXES.items() if name.startswith(head)), "")
    if reason:
        raise ConfigError(f"{where}: {name} {reason}; leave it out")
    if secret_too and sounds_secret(name):
        raise ConfigError(f"{where}: {name} sounds like a secret, and plan.json would show it; use engine.pass_env")


def text(where: str, value: Any) -> str | None:
    """A variable's value; null is unset. Raises ConfigError for anything but text: YAML reads 12:30 as 750."""
    if value is not None and not isinstance(value, str):
        raise ConfigError(f"{where}: found {value!r}, but a variable is text; {quoting(where, value)}")
    if value is not None and value.lower() in NOT_NULL:
        raise ConfigError(f"{where}: found the text {value!r}; write null to unset it")
    if value is not None and "\0" in value:
        raise ConfigError(f"{where}: found a NUL character, which no variable can hold")
    return value


def unknown(where: str, name: str, version: str, known: Collection[str]) -> ConfigError:
    """The error for a VLLM_ name that neither the engine nor a known overlay reads: it would silently do nothing."""
    return ConfigError(
        f"{where}: vLLM {version} reads no variable {name}{near(name, known)}, and no overlay declares it; "
        "it would do nothing"
    )
