# An image with denoise, and with ffmpeg for videos and for what else denoise leaves to it:
#
#     docker build -t alphamf .
#     docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/audio" alphamf interview.wav voice.wav

FROM rust:1-slim-bookworm AS build
WORKDIR /source
COPY . .
RUN cargo build --locked --release --package alphamf-cli && packaging/licences.sh alphamf-cli licences

FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ffmpeg \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --no-create-home --shell /usr/sbin/nologin denoise
COPY --from=build /source/target/release/denoise /usr/local/bin/denoise
COPY --from=build /source/licences /source/models/README.md /usr/local/share/doc/alphamf/
RUN ln -s denoise /usr/local/bin/alphamf
USER denoise
WORKDIR /audio
ENTRYPOINT ["denoise"]
CMD ["--help"]
