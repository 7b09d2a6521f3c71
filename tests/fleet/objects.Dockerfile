# An S3 API server for tests; it keeps nothing and checks no signature.
ARG PYTHON_IMAGE=python:3.11-slim-bookworm
FROM ${PYTHON_IMAGE}
RUN python -m venv /opt/venv && /opt/venv/bin/pip install --quiet --no-cache-dir 'moto[server,s3]>=5'
ENV PATH=/opt/venv/bin:$PATH HOME=/tmp
