"""Programs that default plans use."""

DDP, FSDP, MEGATRON = "torch-ddp", "torch-fsdp", "megatron-lm"
