"""Use of processors, memory, network and GPUs during a launch, sampled by a separate process."""
