"""Where runs take place: this process, local processes, a Ray cluster."""
