# SPDX-License-Identifier: BSD-3-Clause
"""What the numbers were measured on: processor and versions, no paths and no names."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def facts(more: tuple[str, ...] = ()) -> dict[str, str]:
    """Processor, cores, instruction set and versions, of more packages too if they are named."""
    from maxmargin import core

    packages = ("maxmargin", "liblinear-official", "scikit-learn", "numpy", "scipy", *more)
    return {
        "processor": _processor(),
        "cores": str(cores()),
        "instruction set of maxmargin": core.INSTRUCTION_SET,
        "Python": platform.python_version(),
        **{name: _version(name) for name in packages},
    }


def cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def last_cache() -> int:
    """Bytes of the processor's last cache; 0 where the system does not tell."""
    sizes = [
        path.read_text().strip() for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")
    ]
    return max((int(size[:-1]) << 10 for size in sizes if size.endswith("K")), default=0)


def load_average() -> float:
    """Of the last minute; 0 where the system does not tell."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


def load_warning() -> str | None:
    """A sentence when others use the machine now."""
    load = load_average()
    if load <= 0.25 * cores():
        return None
    return (
        f"The load average is {load:.1f} on {cores()} cores at the start: others use this machine, "
        "and the times will be too long. Ratios suffer less than times; run again when it is quiet."
    )


def with_note(page: str, command: str, *warnings: str | None) -> str:
    """A page with a comment below its title, for those who open its source: who wrote it, and when not to
    trust its times.
    """
    title, _, rest = page.partition("\n")
    note = "\n".join([f"Written by `{command}`; do not edit it.", *filter(None, warnings)])
    return f"{title}\n\n<!-- {note} -->\n{rest}"


def newest_source() -> float:
    """When the package was changed last: what an older one found may be out of date."""
    import maxmargin

    folder = Path(maxmargin.__file__).parent
    files = [path for ending in ("*.py", "*.so") for path in folder.rglob(ending)]
    return max(path.stat().st_mtime for path in files)


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    if path.exists():
        for line in path.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
