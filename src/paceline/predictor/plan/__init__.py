"""Plans: degrees of parallelism, schedules, recomputation, gradient synchronisation."""
