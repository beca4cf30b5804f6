"""The environment variables that an engine may be given: what reaches it, what the runner keeps, what is a secret."""

import re
from collections.abc import Collection
from typing import Any

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
SECRET = re.compile(r"(KEY|KEYS|TOKEN|SECRET|SECRETS|PASSWORD|PASSWD|CREDENTIAL|CREDENTIALS)(_|$)")


def reaches_the_engine(name: str, known: Collection[str]) -> bool:
    """Whether a variable means something to this engine (`known`) or to a library below it."""
    return name in known or name in SINGLE or name.startswith(FAMILIES)


def sounds_secret(name: str) -> bool:
    """Whether a name says that its value is not for a record: plan.json and MLflow would show it."""
    return SECRET.search(name.upper()) is not None


def refuse(where: str, name: str, *, secret_too: bool = True) -> None:
    """Raises ConfigError for a variable that is the runner's own, or whose value would stand in every record."""
    if name in RUNNERS or name.startswith(RUNNERS_PREFIX):
        raise ConfigError(f"{where}: the runner sets {name} itself for every boot; leave it out")
    if secret_too and sounds_secret(name):
        raise ConfigError(f"{where}: {name} sounds like a secret, and plan.json would show it; use engine.pass_env")


def text(where: str, value: Any) -> str | None:
    """A variable's value; null is unset. Raises ConfigError for anything but text: YAML reads 12:30 as 750."""
    if value is not None and not isinstance(value, str):
        raise ConfigError(f'{where}: found {value!r}, but a variable is text; quote it, for instance "1" or "off"')
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
