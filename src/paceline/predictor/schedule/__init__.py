"""Schedules of a step: data parallel, sharded and pipelined, as tasks or as arrays of times."""
