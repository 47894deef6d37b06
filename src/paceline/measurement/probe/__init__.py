"""Micro-benchmarks of a machine: GEMM, memory bandwidth, collectives."""
