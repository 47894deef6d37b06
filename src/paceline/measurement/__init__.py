"""From a study to launches: jobs, launchers, framework workers, probes."""
