# étude with PyTorch's CUDA build:  docker build -t etude .  &&  docker run --gpus all -v "$PWD:/work" etude sweep table3
FROM python:3.11-slim

COPY pyproject.toml README.md LICENSE /opt/etude/
COPY src /opt/etude/src
COPY conf /opt/etude/conf
COPY experiments /opt/etude/experiments
COPY sweeps /opt/etude/sweeps
COPY template /opt/etude/template
RUN pip install --no-cache-dir "/opt/etude[slurm,tensorboard,parquet]"

# Runs, and text that is prepared once, stay in the folder that is mounted.
ENV ETUDE_CACHE=/work/.cache
WORKDIR /work
ENTRYPOINT ["etude"]
CMD ["--help"]
