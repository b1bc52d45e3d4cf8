# SPDX-License-Identifier: BSD-3-Clause
"""Benchmarks at equal quality: objective, data sets, solvers. Run: python -m benchmarks linear"""
