"""What a bug report needs to say of the machine: versions, devices, threads."""

import json
import os
import platform
from importlib.metadata import PackageNotFoundError, version

import torch

from regard import __version__

# Packages that may change what regard does or says; absent ones are named too.
PACKAGES = ("numpy", "rich", "triton", "typer")

# Settings of the surroundings that change results or speed. Nothing else of the environment is read.
SETTINGS = (
    "CUBLAS_WORKSPACE_CONFIG",
    "CUDA_VISIBLE_DEVICES",
    "MKL_NUM_THREADS",
    "NO_COLOR",
    "OMP_NUM_THREADS",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_ENABLE_MPS_FALLBACK",
    "TORCH_COMPILE_DISABLE",
    "TRITON_INTERPRET",
)

Facts = dict[str, str | int | bool | list[str] | None]


def describe() -> Facts:
    """Each fact by its name; None means absent or not set."""
    facts: Facts = {
        "regard": __version__,
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "threads between operations": torch.get_num_interop_threads(),
        "cores": os.cpu_count(),
        "cpu capability": torch.backends.cpu.get_cpu_capability(),
        "cuda build": torch.version.cuda,
        "hip build": torch.version.hip,
        "gpus": _gpus(),
        "mps": torch.backends.mps.is_available(),
        "default dtype": str(torch.get_default_dtype()),
        "deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
        "float32 matmul precision": torch.get_float32_matmul_precision(),
    }
    facts |= {package: _installed(package) for package in PACKAGES}
    facts |= {setting: os.environ.get(setting) for setting in SETTINGS}
    return facts


def as_json(facts: Facts) -> str:
    """For machines."""
    return json.dumps(facts, indent=2)


def as_text(facts: Facts) -> str:
    """One line a fact, in two columns; settings that are not set are left out."""
    rows = {name: _in_words(value) for name, value in facts.items() if name not in SETTINGS or value is not None}
    width = max(len(name) for name in rows)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows.items())


def _in_words(value: str | int | bool | list[str] | None) -> str:
    if value is None or value == []:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "; ".join(value) if isinstance(value, list) else str(value)


def _gpus() -> list[str]:
    if not torch.cuda.is_available():
        return []
    gpus = [torch.cuda.get_device_properties(index) for index in range(torch.cuda.device_count())]
    return [f"{gpu.name}, {gpu.total_memory / 2**30:.0f} GiB, capability {gpu.major}.{gpu.minor}" for gpu in gpus]


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
