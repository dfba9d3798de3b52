// Lints a text from standard input as if it stood in the file named by the first argument, and prints the ids of the broken
// rules as JSON. The fence tests use it: nothing has to be written into the tree to prove that a rule bites.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
process.chdir(root);
if (!process.argv.includes('--without-graph')) {
  const graph = spawnSync(process.execPath, ['node_modules/nx/dist/bin/nx.js', 'show', 'projects', '--json'], { env: process.env, encoding: 'utf8' });
  if (graph.status !== 0) throw new Error(graph.stderr);
}
const { ESLint } = await import('eslint');
const typed = ['no-floating-promises', 'no-misused-promises', 'switch-exhaustiveness-check'];
const eslint = new ESLint({
  overrideConfig: {
    languageOptions: { parserOptions: { project: null } },
    rules: Object.fromEntries(typed.map((name) => [`@typescript-eslint/${name}`, 'off'])),
  },
});
const [result] = await eslint.lintText(readFileSync(0, 'utf8'), { filePath: join(root, process.argv[2]) });
process.stdout.write(JSON.stringify(result.messages.map((message) => message.ruleId ?? message.message)));
