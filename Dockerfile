# The janitor's image: one bundle, no shell needed, no write to its own file system.
FROM node:24.22.3-bookworm-slim AS build
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

FROM node:24.22.3-bookworm-slim
ENV NODE_ENV=production
COPY --from=build /src/package.json /app/package.json
COPY --from=build /src/dist /app/dist
# Numbers, so that `runAsNonRoot` can be checked without the image's own list of users.
USER 65532:65532
ENTRYPOINT ["node", "/app/dist/main.js"]
