"""One module per readiness area. Each holds its schema and its safe default as data; rules live in
`..rules`."""
