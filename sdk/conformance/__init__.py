"""The conformance kit: what a module has to do with what Holdpoint sends it, as probes. Pure; a door sends them."""
