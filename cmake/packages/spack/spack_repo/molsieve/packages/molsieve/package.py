# SPDX-License-Identifier: Apache-2.0
"""Spack's recipe: spack repo add cmake/packages/spack/spack_repo/molsieve && spack install molsieve (docs/INSTALL.md)"""
import os

from spack_repo.builtin.build_systems.cmake import CMakePackage
from spack_repo.builtin.build_systems.cuda import CudaPackage

from spack.package import *


class Molsieve(CMakePackage, CudaPackage):
    """Ranks libraries of small molecules by predicted properties, with an error estimate for each. A run can be stopped
    at any moment and continues with the same result, bit for bit."""

    # The repository that this file is in.
    git = "file://" + os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 7))

    license("Apache-2.0 AND GPL-2.0-only")  # the program; the chemistry worker molsieve-chem

    version("main", branch="main")

    variant("mpi", default=False, description="Ranks over MPI, a plugin")
    variant("nccl", default=False, when="+cuda", description="Ranks over NCCL, a plugin")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.22:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("openbabel@3.1:")
    depends_on("sqlite@3.22:")
    depends_on("libyaml")
    depends_on("jansson")
    depends_on("zlib-api")
    depends_on("mpi", when="+mpi")
    depends_on("cuda@12:", when="+cuda")
    depends_on("nccl@2.14:", when="+nccl")

    # The plugin has its own list of architectures: 8.0, 9.0 and PTX.
    conflicts("+cuda", when="platform=darwin")

    generator("ninja")

    def cmake_args(self):
        return [
            self.define("MOLSIEVE_TESTS", False),
            self.define("MOLSIEVE_CUDA", "ON" if self.spec.satisfies("+cuda") else "OFF"),
            self.define("CMAKE_DISABLE_FIND_PACKAGE_MPI", not self.spec.satisfies("+mpi")),
        ]

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_install(self):
        molsieve = Executable(self.prefix.bin.molsieve)
        molsieve("doctor")
        molsieve("init", "demo")
        molsieve("run", "demo/workflows/screen.yaml")
