# The janitor's image: Node, the bundle and nothing else. Both bases are indexes of several architectures (amd64 and arm64 among them), pinned by digest.
FROM node:24.21.0-bookworm-slim@sha256:0e0ff40c39bc087845bfb27465a0df4ea419520094bc35842ff83dd8cbe6f9b6 AS build
WORKDIR /src
COPY package.json package-lock.json ./
RUN npm ci
COPY tsconfig.json ./
COPY scripts scripts
COPY src src
RUN node scripts/build.ts && chown 65532:65532 dist/compile-cache
# As the image's user: compiled code is kept apart by user. A pod that runs as another compiles anew.
USER 65532:65532
RUN node scripts/warm-compile-cache.ts

# No shell and no package manager. Node 24.21.0 on Debian 13.
FROM gcr.io/distroless/nodejs24-debian13:nonroot@sha256:9eeb7f5887d0e239e78264b06f7f11d2e14be534050481803a9e4728fcdd278e
LABEL org.opencontainers.image.title="pulumi-lock-janitor" \
      org.opencontainers.image.description="Removes Pulumi's lock files whose owner is provably gone from Kubernetes" \
      org.opencontainers.image.licenses="Apache-2.0"
ENV NODE_ENV=production
COPY --from=build /src/package.json /app/package.json
COPY --from=build /src/dist /app/dist
# Numbers, so that `runAsNonRoot` can be checked without the image's own list of users.
USER 65532:65532
ENTRYPOINT ["/nodejs/bin/node", "/app/dist/main.js"]
