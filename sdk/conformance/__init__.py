"""The conformance kit: probes that show whether a module handles Holdpoint's messages correctly. Pure; the command
`check_module` sends them."""
