# A container with molsieve in /usr/local: podman build -t molsieve .   (or docker build, buildah bud)
# Without CUDA and MPI: ranks sum over TCP. docs/INSTALL.md
FROM debian:12-slim AS build
COPY scripts/packages.sh /src/scripts/
RUN apt-get update && apt-get install -y --no-install-recommends git && /src/scripts/packages.sh build
COPY . /src
RUN cd /src && cmake --preset release && cmake --build build/release && cmake --install build/release --prefix /opt/molsieve

FROM debian:12-slim
RUN apt-get update && apt-get install -y --no-install-recommends \
        libopenbabel7 libsqlite3-0 libyaml-0-2 libjansson4 zlib1g && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/molsieve /usr/local
WORKDIR /data
ENTRYPOINT ["molsieve"]
