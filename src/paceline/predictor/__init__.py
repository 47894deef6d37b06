"""Workload x hardware x plan x evidence -> step: layer costs, collectives, schedules, memory."""
