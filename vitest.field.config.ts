import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/field/**/*.test.ts"],
    globalSetup: ["test/field/setup.ts"],
    fileParallelism: false,
    testTimeout: 60_000,
    // All scenarios run side by side before the first test.
    hookTimeout: 1_200_000,
  },
});
