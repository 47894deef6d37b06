"""Time of each layer on a device: roofline, GEMM and attention efficiency, measured layers."""
