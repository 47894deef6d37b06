"""How busy processors, memory, network and GPUs were during a launch, sampled beside it."""
