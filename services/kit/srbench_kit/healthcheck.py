"""`python -m srbench_kit.healthcheck [--plain] ADDRESS [SERVICE]`: exit code 0 when the gRPC service there serves.

With TLS between the services it is used, but for `--plain`, which the gateway's front door needs.
"""

from __future__ import annotations

import sys

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from srbench_kit import tls

TIMEOUT_S = 4.0


def _channel(address: str) -> grpc.Channel:
    options: list[tuple[str, object]] = [("grpc.enable_http_proxy", 0)]
    secrets = tls.files() if tls.applies(address) and "--plain" not in sys.argv else None
    if secrets is None:
        return grpc.insecure_channel(address, options)
    return grpc.secure_channel(address, tls.channel_credentials(secrets), [*options, tls.TARGET_OPTION])


def main() -> int:
    """Asks once."""
    words = [word for word in sys.argv[1:] if word != "--plain"]
    if len(words) not in (1, 2):
        print(__doc__, file=sys.stderr)
        return 2
    address, service = words[0], words[1] if len(words) == 2 else ""
    with _channel(address) as channel:
        try:
            answer = health_pb2_grpc.HealthStub(channel).Check(
                health_pb2.HealthCheckRequest(service=service), timeout=TIMEOUT_S
            )
        except grpc.RpcError as error:
            print(f"{address}: {error.code().name}", file=sys.stderr)
            return 1
    if answer.status == health_pb2.HealthCheckResponse.SERVING:
        return 0
    print(f"{address}: {health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
