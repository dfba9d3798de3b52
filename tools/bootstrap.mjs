// Every npm script starts here, on whatever Node the machine has (20 or newer): it installs what is missing, builds what
// changed, and hands over to the Node that the workspace brings.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const modules = join(root, 'node_modules');
const [command, ...rest] = process.argv.slice(2);
const say = (text) => process.stderr.write(`${text}\n`);

/** Ends with the message; every message says what to do next. */
function fail(text, code = 1) {
  say(text);
  process.exit(code);
}

function installDependencies() {
  const wanted = createHash('sha256').update(readFileSync(join(root, 'package-lock.json'))).digest('hex');
  const stamp = join(modules, '.penstock-lock');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return;
  say('installing dependencies (npm ci), once for this lock file…');
  const npmPath = process.env.npm_execpath;
  const [file, args] = npmPath ? [process.execPath, [npmPath]] : ['npm', []];
  const startedMs = Date.now();
  const result = spawnSync(file, [...args, 'ci', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: root, stdio: ['ignore', 2, 2] });
  if (result.status !== 0) fail('npm ci failed: see the lines above. Check that the npm registry is in reach and that the disk has 1 GB free, then run the command again.');
  writeFileSync(stamp, wanted);
  say(`installed dependencies in ${((Date.now() - startedMs) / 1000).toFixed(1)} s`);
}

function workspaceNode() {
  const candidates = [join(modules, 'node', 'bin', 'node'), join(modules, '.bin', 'node')];
  const found = candidates.find((path) => existsSync(path));
  if (found === undefined) fail('The workspace has no Node of its own (npm package "node"). Delete node_modules and run the command again.');
  const major = Number(process.versions.node.split('.')[0]);
  if (major < 20) fail(`Node ${process.versions.node} is too old to start with; install Node 20 or newer.`);
  return found;
}

const node = () => workspaceNode();
const environment = () => ({
  ...process.env,
  PATH: `${join(modules, 'node', 'bin')}:${join(modules, '.bin')}:${process.env.PATH ?? ''}`,
  NX_DAEMON: 'false',
  NX_NO_CLOUD: 'true',
});

function runSync(args, options = {}) {
  return spawnSync(node(), args, { cwd: root, env: environment(), stdio: ['ignore', 'inherit', 'inherit'], ...options });
}

function build() {
  const result = runSync(['tools/build.mjs'], { stdio: ['ignore', 2, 2] });
  if (result.status !== 0) fail('The build failed: see the lines above.');
}

/** Replaces this process as far as Node can: same terminal, signals passed on, same exit code. */
function handOver(args) {
  const child = spawn(node(), ['--enable-source-maps', ...args], { cwd: process.env.INIT_CWD ?? process.cwd(), env: environment(), stdio: 'inherit' });
  // A Ctrl-C reaches the child through the terminal already; the parent only has to outlive it.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => (signal === 'SIGTERM' ? child.kill(signal) : undefined));
  child.on('exit', (code, signal) => process.exit(code ?? (signal === 'SIGINT' ? 130 : 1)));
}

function test() {
  const scratch = mkdtempSync(join(tmpdir(), 'penstock-test-'));
  const report = join(scratch, 'jest.json');
  const steps = [
    ['types', ['node_modules/typescript7/bin/tsc', '-p', 'tsconfig.json']],
    ['lint', ['tools/lint.mjs']],
    ['tests', ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning', 'node_modules/jest/bin/jest.js', '--json', `--outputFile=${report}`, ...rest]],
  ];
  let passed = 0;
  let failed = 0;
  for (const [name, args] of steps) {
    say(`\n== ${name}`);
    const startedMs = Date.now();
    // Jest's report goes to the file; what it prints for people is on standard error.
    const result = runSync(args, { stdio: ['ignore', name === 'tests' ? 'ignore' : 'inherit', 'inherit'] });
    say(`== ${name}: ${result.status === 0 ? 'ok' : 'FAILED'} in ${((Date.now() - startedMs) / 1000).toFixed(1)} s`);
    if (name !== 'tests') {
      if (result.status === 0) passed += 1;
      else failed += 1;
      continue;
    }
    const summary = existsSync(report) ? JSON.parse(readFileSync(report, 'utf8')) : undefined;
    passed += summary?.numPassedTests ?? 0;
    failed += (summary?.numFailedTests ?? 0) + (summary?.numRuntimeErrorTestSuites ?? 0);
    if (result.status !== 0 && failed === 0) failed += 1;
  }
  rmSync(scratch, { recursive: true, force: true });
  process.stdout.write(`${passed} passed, ${failed} failed\n`);
  process.exit(failed === 0 ? 0 : 1);
}

const services = ['gateway', 'router', 'scheduler', 'autoscaler', 'registry', 'metering', 'batch', 'agent', 'engine-sim', 'engine-onnx'];

installDependencies();
build();
switch (command) {
  case 'build':
    break;
  case 'up':
    handOver([join(root, 'apps/cli/dist/main.js'), 'up', ...rest]);
    break;
  case 'cli':
    handOver([join(root, 'apps/cli/dist/main.js'), ...rest]);
    break;
  case 'start': {
    const [service, ...args] = rest;
    if (!services.includes(service)) fail(`Which service? One of: ${services.join(', ')}. For example: npm run start -- router`, 2);
    handOver([join(root, `apps/${service}/dist/main.js`), ...args]);
    break;
  }
  case 'test':
    test();
    break;
  case 'bench':
  case 'drill':
  case 'conformance':
  case 'contracts':
    handOver([join(root, 'test/dist/harness.js'), command, ...rest]);
    break;
  default:
    fail(`Unknown command ${command}. Use: up, start, penstock, test, bench, drill, conformance, contracts, build.`, 2);
}
