# SPDX-License-Identifier: Apache-2.0
"""The version of the package and of the program that it needs; tests/cli/python_e2e.py compares it with CMakeLists.txt."""
__version__ = "0.1.0"
