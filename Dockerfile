# The pinned environment in a container: docker build -t pufferflow . && docker run -v "$PWD/results:/pufferflow/results" pufferflow
FROM python:3.11-slim

RUN apt-get update && apt-get install --yes --no-install-recommends git make && rm -rf /var/lib/apt/lists/*
WORKDIR /pufferflow
COPY requirements.lock pyproject.toml README.md LICENSE Makefile ./
COPY pufferflow pufferflow
RUN make .venv/.ready
ENV PATH="/pufferflow/.venv/bin:$PATH"
COPY . .
CMD ["make", "reproduce"]
