# Containers with molsieve in /usr/local: podman build -t molsieve .   (or docker build, buildah bud)
#   --target mpi     also ranks over MPI (Open MPI)
#   --target cuda    also the GPU plugin; run with --gpus all or --device nvidia.com/gpu=all
#   --target base    neither; ranks sum over TCP. Also without a target, but older podman then builds all three
# The programs run as the user molsieve (1000). docs/INSTALL.md
ARG BASE=debian:12-slim
ARG CUDA=nvidia/cuda:12.6.3-devel-ubuntu22.04

FROM ${BASE} AS build
COPY scripts/packages.sh /src/scripts/
RUN apt-get update && apt-get install -y --no-install-recommends git && /src/scripts/packages.sh build
COPY . /src
RUN cd /src && cmake --preset release -DMOLSIEVE_CUDA=OFF -DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON && \
    cmake --build build/release && cmake --install build/release --prefix /opt/molsieve

FROM ${BASE} AS base
RUN apt-get update && apt-get install -y --no-install-recommends \
        libopenbabel7 libsqlite3-0 libyaml-0-2 libjansson4 zlib1g && rm -rf /var/lib/apt/lists/* && \
    useradd --uid 1000 --create-home molsieve && install -d -o molsieve /data
COPY --from=build /opt/molsieve /usr/local
RUN ldconfig
WORKDIR /data
USER molsieve
ENTRYPOINT ["molsieve"]

FROM build AS build-mpi
RUN apt-get update && apt-get install -y --no-install-recommends libopenmpi-dev && cd /src && \
    cmake --preset release -DCMAKE_DISABLE_FIND_PACKAGE_MPI=OFF && cmake --build build/release --target molsieve_mpi

FROM base AS mpi
USER root
RUN apt-get update && apt-get install -y --no-install-recommends openmpi-bin libopenmpi3 && rm -rf /var/lib/apt/lists/*
COPY --from=build-mpi /src/build/release/bin/libmolsieve_mpi.so /usr/local/lib/molsieve/
USER molsieve

# Only the toolkit of this image is used, with the compiler and libraries of the one above.
FROM ${CUDA} AS toolkit
FROM build AS build-cuda
RUN --mount=type=bind,from=toolkit,source=/usr/local,target=/mnt cd /src && \
    cmake --preset release -DMOLSIEVE_CUDA=ON -DCUDAToolkit_ROOT="$(ls -d /mnt/cuda-1?.* | tail -n 1)" && \
    cmake --build build/release --target molsieve_cuda

FROM base AS cuda
COPY --from=build-cuda /src/build/release/bin/libmolsieve_cuda.so /usr/local/lib/molsieve/
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility

FROM base
