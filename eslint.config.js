import { fileURLToPath } from 'node:url';
import importX from 'eslint-plugin-import-x';
import vue from 'eslint-plugin-vue';
import tseslint from 'typescript-eslint';

const root = fileURLToPath(new URL('.', import.meta.url));
const zone = (target, from, message) => ({ target, from, message });

export default tseslint.config(
  {
    ignores: [
      'node_modules',
      'out',
      'dist',
      'build',
      '.tessera',
      'coverage',
      'test-results',
      'native',
      'assets',
    ],
  },
  ...tseslint.configs.strictTypeChecked,
  ...vue.configs['flat/recommended'],
  {
    languageOptions: {
      parserOptions: { projectService: true, tsconfigRootDir: root, extraFileExtensions: ['.vue'] },
    },
    plugins: { 'import-x': importX },
    rules: {
      '@typescript-eslint/no-explicit-any': 'error',
      // A fifth of lint's time, for enums, which Node's type stripping does not take, and the few classes there are.
      '@typescript-eslint/no-unsafe-class-instance-assignment': 'off',
      '@typescript-eslint/no-unsafe-enum-assignment': 'off',
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      // The dependency rule of docs/ARCHITECTURE.md.
      'import-x/no-restricted-paths': [
        'error',
        {
          basePath: root,
          zones: [
            zone(
              './renderer',
              ['./db/**', './main/!(contract)/**', './main/*.ts'],
              'The renderer imports nothing of ours but the contract.',
            ),
            zone('./db', ['./main/**', './renderer/**'], 'The database layer imports nothing of ours.'),
            zone(
              './main/contract',
              ['./main/!(contract)/**', './main/*.ts', './db/**', './renderer/**'],
              'The contract imports nothing of ours.',
            ),
            zone(
              './main/core',
              ['./main/!(core|contract)/**', './main/*.ts', './renderer/**'],
              'The core imports the contract and db alone.',
            ),
            zone('./main', ['./renderer/**'], 'Nobody imports the renderer.'),
          ],
        },
      ],
    },
  },
  {
    files: ['main/core/**', 'main/contract/**', 'main/cli/**', 'db/**'],
    rules: {
      'no-restricted-imports': [
        'error',
        { paths: [{ name: 'electron', message: 'The core runs in Node, never in Electron.' }] },
      ],
    },
  },
  {
    files: ['tests/**'],
    // A test that reads what is not there fails where it reads it.
    rules: { '@typescript-eslint/no-non-null-assertion': 'off' },
  },
  {
    // Types in components are vue-tsc's: with them lint takes twice as long, since each component's script makes
    // TypeScript begin anew. Logic lives beside them in .ts files.
    files: ['**/*.vue'],
    languageOptions: {
      parserOptions: { parser: tseslint.parser, projectService: false, program: null },
    },
    rules: {
      ...tseslint.configs.disableTypeChecked.rules,
      // Prettier lays templates out.
      'vue/max-attributes-per-line': 'off',
      'vue/singleline-html-element-content-newline': 'off',
      'vue/html-self-closing': 'off',
      'vue/html-indent': 'off',
      'vue/html-closing-bracket-newline': 'off',
      'vue/multi-word-component-names': 'off',
      'vue/multiline-html-element-content-newline': 'off',
    },
  },
  {
    files: ['**/*.js', '**/*.mjs', '**/*.cjs'],
    ...tseslint.configs.disableTypeChecked,
    languageOptions: { parserOptions: { projectService: false, program: null } },
  },
  {
    files: ['scripts/setup/defaultApp/**'],
    rules: { '@typescript-eslint/no-require-imports': 'off' },
  },
);
