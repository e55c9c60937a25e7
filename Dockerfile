# étude with PyTorch's CUDA build:  docker build -t etude .  &&  docker run --gpus all -v "$PWD:/study" etude sweep table3
FROM python:3.11-slim

COPY pyproject.toml constraints.txt README.md LICENSE /usr/src/etude/
COPY src /usr/src/etude/src
COPY conf /usr/src/etude/conf
COPY experiments /usr/src/etude/experiments
COPY sweeps /usr/src/etude/sweeps
COPY template /usr/src/etude/template
RUN pip install --no-cache-dir -c /usr/src/etude/constraints.txt "/usr/src/etude[slurm,tensorboard,parquet]"

# Runs, and text that is prepared once, stay in the folder that is mounted.
ENV ETUDE_CACHE=/study/.cache
WORKDIR /study
ENTRYPOINT ["etude"]
CMD ["--help"]
