// Lints the whole workspace once. The module-boundary rule is silently skipped while Nx has no project graph,
// so the graph is made first and a skipped rule counts as a failure.
import { spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const env = { ...process.env, NX_DAEMON: 'false', NX_NO_CLOUD: 'true', NODE_OPTIONS: '' };
const run = (args) => spawnSync(process.execPath, args, { cwd: root, env, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 });

const graph = run(['node_modules/nx/dist/bin/nx.js', 'show', 'projects', '--json']);
if (graph.status !== 0) {
  process.stderr.write(`${graph.stdout}${graph.stderr}\nNx could not make the project graph: fix the message above, then lint again.\n`);
  process.exit(1);
}
const targets = process.argv.slice(2);
const lint = run(['node_modules/eslint/bin/eslint.js', '--max-warnings', '0', ...(targets.length > 0 ? targets : ['apps', 'libs', 'test'])]);
const output = `${lint.stdout}${lint.stderr}`;
process.stdout.write(output);
if (output.includes('No cached ProjectGraph is available')) {
  process.stderr.write('The module boundaries were not checked because Nx had no project graph.\n');
  process.exit(1);
}
process.exit(lint.status ?? 1);
