# Closed Stacks: one image for server, worker and migrations.

FROM python:3.13-slim-trixie AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /opt/stacks
COPY requirements-run.lock ./
RUN python -m venv venv && venv/bin/pip install --require-hashes --requirement requirements-run.lock
COPY . ./
RUN venv/bin/pip install --no-deps --no-build-isolation --editable . \
    && venv/bin/python -m compileall -q app migrations acceptance

FROM python:3.13-slim-trixie
# Reads scanned pages in English and Russian; RapidOCR, one of the Python packages, those in Chinese.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends tesseract-ocr tesseract-ocr-rus \
    && rm -rf /var/lib/apt/lists/*
RUN groupadd --system --gid 10001 stacks \
    && useradd --system --uid 10001 --gid stacks --home-dir /var/lib/stacks --no-create-home stacks \
    && install --directory --owner=stacks --group=stacks --mode=0700 /var/lib/stacks
# Root's, so that the service cannot change its own code.
COPY --from=build /opt/stacks /opt/stacks
# onnxruntime reports its use to its maker unless it is told not to before it is loaded.
ENV PATH=/opt/stacks/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    ORT_DISABLE_TELEMETRY=1 \
    STACKS_DATA_DIR=/var/lib/stacks
WORKDIR /opt/stacks
USER 10001:10001
VOLUME /var/lib/stacks
EXPOSE 8700
ENTRYPOINT ["stacks"]
CMD ["serve"]
