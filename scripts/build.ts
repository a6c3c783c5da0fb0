import { rm } from "node:fs/promises";

import { build } from "esbuild";

// One file for each lazy part, so that a sweep loads no SDK that it does not use.
await rm("dist", { recursive: true, force: true });
await build({
  entryPoints: ["src/main.ts"],
  outdir: "dist",
  bundle: true,
  splitting: true,
  format: "esm",
  platform: "node",
  target: "node22.19",
  chunkNames: "chunks/[name]-[hash]",
  minifySyntax: true,
  legalComments: "none",
  banner: {
    // Libraries in CommonJS call require() for Node's own modules, which a bundle in ESM does not have.
    js: '#!/usr/bin/env node\nimport { createRequire as createRequireOfBundle } from "node:module";\nconst require = createRequireOfBundle(import.meta.url);',
  },
  logLevel: "warning",
});
