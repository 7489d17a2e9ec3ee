# Image with uqeval and its compiled loops. docs/containers.md tells how to build and run it.
FROM python:3.12-slim AS build
ARG EXTRAS=cloud,dask
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY uqeval uqeval
RUN python -m venv /opt/uqeval && /opt/uqeval/bin/pip install --no-cache-dir ".[$EXTRAS]"

FROM python:3.12-slim
# Loops are compiled for this CPU and all later ones. For ARM64: generic, and no features.
ARG NUMBA_CPU_NAME=x86-64-v3
ARG NUMBA_CPU_FEATURES=+f16c
ENV PATH=/opt/uqeval/bin:$PATH \
    NUMBA_CACHE_DIR=/opt/uqeval/loops \
    NUMBA_CPU_NAME=$NUMBA_CPU_NAME \
    NUMBA_CPU_FEATURES=$NUMBA_CPU_FEATURES \
    MPLCONFIGDIR=/tmp/matplotlib
COPY --from=build /opt/uqeval /opt/uqeval
RUN uqeval warmup
USER 65532:65532
WORKDIR /data
ENTRYPOINT ["uqeval"]
CMD ["--help"]
