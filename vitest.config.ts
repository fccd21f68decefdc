import vue from '@vitejs/plugin-vue';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  plugins: [vue()],
  test: {
    include: ['tests/**/*.test.ts'],
    exclude: ['tests/e2e/**', 'node_modules/**'],
    // Forks: the database addon and the tokenizer run as they do in the core, one process each.
    pool: 'forks',
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
});
