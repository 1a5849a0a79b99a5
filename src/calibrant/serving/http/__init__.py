"""HTTP: connections, host check, request bodies, problem details, worker processes."""
