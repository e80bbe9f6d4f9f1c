# carnot in a container. The first stage builds a Debian package, the second installs it beside a LibTorch:
#   docker build --tag carnot .
#   docker run --rm --volume "$PWD/runs:/runs" carnot train /usr/share/carnot/recipes/quickstart.yaml run_folder=/runs/quickstart

FROM debian:bookworm AS build
COPY . /carnot
WORKDIR /carnot
RUN tools/install.sh
RUN ./run build carnot
RUN cd build && cpack -G DEB -D CPACK_COMPONENTS_ALL=program
# LibTorch's libraries, and those of CUDA that a CUDA wheel loads; no headers, no Python.
RUN mkdir -p /libtorch/packages && cd .venv/lib/python3*/site-packages \
    && for part in torch/lib nvidia; do if [ -e "$part" ]; then cp -a --parents "$part" /libtorch/packages; fi; done

FROM debian:bookworm-slim
COPY --from=build /carnot/build/carnot_*.deb /tmp/
COPY --from=build /libtorch/packages /usr/lib/carnot/packages
RUN ln -s packages/torch /usr/lib/carnot/libtorch \
    && apt-get update && apt-get install -y --no-install-recommends /tmp/carnot_*.deb \
    && rm -rf /tmp/carnot_*.deb /var/lib/apt/lists/*
ENTRYPOINT ["carnot"]
CMD ["--help"]
