"""Events, spans, phases and the merging of ranks that all trace readers share."""
