import { defineConfig } from '@playwright/test';

// Tests in a real window: one app at a time, each with a home of its own. Nothing is retried: a test that fails
// sometimes has found something.
export default defineConfig({
  testDir: 'tests',
  testMatch: ['e2e/**/*.spec.ts', 'security/**/*.spec.ts'],
  workers: 1,
  retries: 0,
  timeout: 120_000,
  expect: { timeout: 30_000 },
  forbidOnly: process.env.CI !== undefined,
  reporter: 'list',
  outputDir: 'test-results',
});
