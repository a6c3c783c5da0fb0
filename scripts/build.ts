import { mkdir, rm, writeFile } from "node:fs/promises";

import { build } from "rolldown";

// One file for each lazy part, so that a sweep loads no SDK that it does not use. CommonJS, for speed: an ESM import of node:http touches every export of it, one of which
// loads the whole of Node's inner undici, and each file costs the ESM loader more. Names are kept: SDKs tell errors and credentials apart by the names of classes.
await rm("dist", { recursive: true, force: true });
await build({
  input: "src/main.ts",
  platform: "node",
  resolve: { mainFields: ["module", "main"] },
  transform: { target: "node22.19" },
  output: {
    dir: "dist",
    format: "cjs",
    dynamicImportInCjs: false,
    banner: (chunk) => (chunk.isEntry ? "#!/usr/bin/env node" : ""),
    entryFileNames: "[name].js",
    chunkFileNames: "chunks/[name]-[hash].js",
    minify: { compress: true, mangle: false, codegen: { removeWhitespace: true } },
    comments: false,
  },
});
// The package itself is of ES modules.
await writeFile("dist/package.json", '{ "type": "commonjs" }\n');
await mkdir("dist/compile-cache");
