"""Agent benchmarks: their harnesses run as processes of their own and ask models through a loopback endpoint."""
