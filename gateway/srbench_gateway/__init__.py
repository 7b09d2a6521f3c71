"""Gateway: HTTP API and one authenticated gRPC front door. Owns nothing."""
