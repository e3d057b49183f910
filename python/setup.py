# SPDX-License-Identifier: Apache-2.0
"""Builds the extension, with the library of the checkout inside it, and the command.

STELE_SYSTEM=1: against an installed libstele instead, by pkg-config (distributions).
STELE_BUILD=DIR: where the library of the checkout is built (default: ../build).
"""

import os
import re
import shlex
import shutil
import subprocess
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

HERE = Path(__file__).resolve().parent
TOP = HERE.parent
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


def pkg_config(*args):
    program = os.environ.get("PKG_CONFIG", "pkg-config")
    return subprocess.check_output([program, *args], text=True).split()


def system():
    return os.environ.get("STELE_SYSTEM", "") not in ("", "0")


def version():
    if system():
        return pkg_config("--modversion", "stele")[0]
    header = (TOP / "lib/stele.h").read_text()
    parts = [re.search(rf"VERSION_{p} (\d+)", header) for p in ("MAJOR", "MINOR", "PATCH")]
    return ".".join(part[1] for part in parts if part)


def private(libs, compiler):
    """libcrypto from its archive, if there is one.

    TensorFlow exports BoringSSL's functions to whatever is loaded after it, under the same names.
    """
    command = [*shlex.split(compiler), "-print-file-name=libcrypto.a"]
    archive = subprocess.check_output(command, text=True).strip()
    return [archive if lib == "-lcrypto" and "/" in archive else lib for lib in libs]


class Build(build_ext):
    def build_extension(self, ext):
        if system():
            ext.extra_compile_args += pkg_config("--cflags", "stele")
            ext.extra_link_args += pkg_config("--libs", "stele")
        else:
            out = Path(os.environ.get("STELE_BUILD", TOP / "build"))
            if "STELE_BUILD" not in os.environ:
                jobs = f"-j{os.cpu_count() or 1}"
                made = [str(out / name) for name in ("libstele.a", "python.libs", "stele")]
                subprocess.check_call(["make", "-C", str(TOP), jobs, f"O={out}", *made])
            libs = (out / "python.libs").read_text().split()
            libs = private(libs, os.environ.get("CC", "cc"))
            ext.include_dirs += [str(TOP / "lib")]
            ext.extra_link_args += [str(out / "libstele.a"), "-Wl,--exclude-libs,ALL", *libs]
            ext.depends += [str(out / "libstele.a"), __file__]
        super().build_extension(ext)
        if not system():  # the command, for python -m stele
            shutil.copy2(out / "stele", Path(self.get_ext_fullpath(ext.name)).with_name("stele"))


extension = Extension(
    "stele._stele",
    sources=sorted(str(p.relative_to(HERE)) for p in HERE.glob("src/*.c")),
    depends=sorted(str(p.relative_to(HERE)) for p in HERE.glob("src/*.h")),
    define_macros=[("_GNU_SOURCE", None)]
    + ([] if FREE_THREADED else [("Py_LIMITED_API", "0x030B0000")]),
    extra_compile_args=["-std=gnu11", "-fvisibility=hidden", "-Wall", "-Wextra",
                        "-Wno-cast-function-type", "-Wno-missing-field-initializers"],
    py_limited_api=not FREE_THREADED,
)

setup(
    version=version(),
    license="Apache-2.0",
    ext_modules=[extension],
    cmdclass={"build_ext": Build},
    # Distributions have the command itself under this name.
    entry_points={} if system() else {"console_scripts": ["stele = stele_command:main"]},
    options={
        # What one was linked to must not turn up in the other.
        "build": {"build_base": "build/system" if system() else "build/checkout"},
        **({} if FREE_THREADED else {"bdist_wheel": {"py_limited_api": "cp311"}}),
    },
)
