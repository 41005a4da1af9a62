/**
 * How the console is built.
 *
 * Owns what makes the files in `dist/` the same on every machine: names that follow from content alone, no time stamps, nothing inlined.
 */

import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

export default defineConfig({
  base: "/console/",
  resolve: {
    alias: { quorate: fileURLToPath(new URL("../sdk/typescript/src/index.ts", import.meta.url)) },
  },
  build: {
    target: "es2022",
    // The policy of the page (CSP) takes neither inline code nor `data:` scripts, and all browsers that we build for preload by themselves.
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    reportCompressedSize: false,
    // The texts of all that is built in, for scripts/deploy/third-party.
    license: { fileName: "licences.txt" },
    rolldownOptions: {
      output: {
        entryFileNames: "assets/[name]-[hash].js",
        chunkFileNames: "assets/[name]-[hash].js",
        assetFileNames: "assets/[name]-[hash][extname]",
        // Plain names for what all places share. A place is a file by itself, loaded when it is first shown.
        codeSplitting: {
          groups: [
            { name: "preact", test: /node_modules/ },
            { name: "client", test: /sdk\/typescript/ },
            { name: "shared", test: /console\/src\/(api|json|keyboard|state|text|ui)\// },
          ],
        },
      },
    },
  },
  test: { include: ["src/**/*.test.ts"] },
});
