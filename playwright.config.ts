import { defineConfig } from '@playwright/test';

// Tests in a real window: one app at a time, each with a home of its own. A test that fails sometimes has found
// something: at a desk nothing is retried. CI tries a failed one once more and names it as flaky in its output, so that
// a display server's hiccup does not hide the hundreds of other results.
export default defineConfig({
  testDir: 'tests',
  testMatch: ['e2e/**/*.spec.ts', 'security/**/*.spec.ts'],
  workers: 1,
  retries: process.env.CI === undefined ? 0 : 1,
  timeout: 120_000,
  expect: { timeout: 30_000 },
  forbidOnly: process.env.CI !== undefined,
  reporter: 'list',
  outputDir: 'test-results',
});
