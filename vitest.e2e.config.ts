import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    // The contract of the backends again, in its whole length.
    include: ["test/e2e/**/*.test.ts", "test/backends/*.test.ts"],
    env: { CONTRACT: "whole" },
    globalSetup: ["test/e2e/setup.ts"],
    fileParallelism: false,
    testTimeout: 180_000,
    hookTimeout: 300_000,
  },
});
