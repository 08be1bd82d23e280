import { defineConfig } from "vitest/config";

// While the page is being worked on, `npm run dev` talks to a studio started by hand on this port.
const studio = "http://127.0.0.1:8765";
const served = { target: studio, changeOrigin: true, headers: { origin: studio } };

export default defineConfig({
  base: "./",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "../src/margrove/studio/static",
    emptyOutDir: true,
    sourcemap: false,
    target: "es2022",
    modulePreload: false,
    cssCodeSplit: false,
    rollupOptions: {
      output: {
        // No hashes: the page is small, the server sends no-store, and the wheel stays readable.
        entryFileNames: "assets/studio.js",
        chunkFileNames: "assets/[name].js",
        assetFileNames: "assets/[name][extname]",
      },
    },
  },
  server: {
    proxy: {
      "/socket": { ...served, ws: true, rewriteWsOrigin: true },
      "/tables": served,
      "/reports": served,
    },
  },
  test: { environment: "happy-dom", include: ["src/**/*.test.ts", "src/**/*.test.tsx"] },
});
