/** Tests in a real browser against real nodes. Owns that they run one after the other: one cluster at a time is enough for a machine. */

import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

export default defineConfig({
  resolve: {
    alias: { quorate: fileURLToPath(new URL("../sdk/typescript/src/index.ts", import.meta.url)) },
  },
  test: {
    include: ["test/**/*.test.ts"],
    fileParallelism: false,
    testTimeout: 60_000,
    hookTimeout: 90_000,
  },
});
