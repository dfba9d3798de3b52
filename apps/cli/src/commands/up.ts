import { Command, Flags } from '@oclif/core';
import { PortTakenError, startProcessTracing, startStandalone, stopSignal, deployFirstModel, deploySecondModel, operatorEnvironment, type FirstModel, type Standalone } from '@penstock/infra-composition';
import { InstanceBusyError, RuntimeUnavailableError, type InstallProgress } from '@penstock/infra-runtimes';
import { EXIT } from '../api-command.js';
import { firstKey } from '../client/first-key.js';
import { writeCliFile } from '../client/write-cli-file.js';
import { askSmokeQuestions } from '../client/smoke.js';
import { ProgressLine } from '../terminal/progress.js';
import { welcome } from '../terminal/welcome.js';

const MS_PER_SECOND = 1_000;

export class Up extends Command {
  static override summary = 'Bring the whole platform up on embedded servers, with a real model in a real engine.';
  static override description = 'Stays in the foreground until Ctrl-C. Data lies in .penstock (or PENSTOCK_HOME) and survives a restart. NATS_URL, DATABASE_URL, CLICKHOUSE_URL and S3_ENDPOINT each replace an embedded server.';
  static override enableJsonFlag = true;
  static override flags = {
    port: Flags.integer({ min: 0, max: 65_535, description: 'port of the API; 0 takes any free one' }),
    host: Flags.string({ default: '127.0.0.1', description: 'address to listen on; loopback unless told otherwise' }),
    smoke: Flags.boolean({ description: 'ask one question through the OpenAI SDK, streamed and not, compare the usage with ClickHouse, and end' }),
    model: Flags.boolean({ default: true, allowNo: true, description: 'serve the default model' }),
  };

  async run(): Promise<unknown> {
    const { flags } = await this.parse(Up);
    const startedMs = performance.now();
    const stopping = stopSignal();
    const tracing = startProcessTracing('penstock', process.env);
    const steps: Record<string, number> = {};
    const bar = new ProgressLine();
    const note = (name: string, ms: number): void => {
      bar.stop();
      steps[name] = Math.round(ms);
      this.logToStderr(`${(ms / MS_PER_SECOND).toFixed(1).padStart(6)} s  ${name}`);
    };
    const platform = await Promise.race([
      startStandalone({ port: flags.port, host: flags.host, onStep: note, onInstall: (progress) => showInstall(bar, progress), onServerEvent: (event) => this.logToStderr(event.message) }).catch((error: unknown) => this.explain(error)),
      stopping.then(() => this.exit(130)),
    ]);
    try {
      return await Promise.race([this.serve(platform, flags, { bar, note, steps, startedMs, stopping }), stopping.then(() => undefined)]);
    } finally {
      bar.stop();
      this.logToStderr('stopping…');
      await platform.close();
      await tracing.stop();
    }
  }

  private async serve(platform: Standalone, flags: { readonly smoke: boolean; readonly model: boolean }, progress: Progress): Promise<unknown> {
    const key = await firstKey(platform);
    const model = flags.model ? await this.firstModel(platform, progress) : undefined;
    await writeCliFile(platform.instance.path('cli.json'), { url: platform.url, adminKey: platform.adminKey, apiKey: key, model: model?.name });
    const totalMs = performance.now() - progress.startedMs;
    progress.steps['total'] = Math.round(totalMs);
    if (flags.smoke) return this.smoke(platform, key, model, progress);
    this.logToStderr(welcome({ url: platform.url, apiKey: key, model: model?.name ?? 'MODEL', standInReason: model?.standInReason, seconds: totalMs / MS_PER_SECOND, logFile: platform.settings.logFile }));
    const leaving = new AbortController();
    const second = flags.model ? this.secondModel(platform, leaving.signal) : undefined;
    await progress.stopping;
    leaving.abort();
    await second;
    return { url: platform.url, steps: progress.steps };
  }

  private async firstModel(platform: Standalone, progress: Progress): Promise<FirstModel> {
    const startedMs = performance.now();
    const model = await deployFirstModel({
      // It asks the registry and watches the fleet, as an operator does.
      environment: operatorEnvironment(platform.settings),
      randomModelPath: platform.instance.path('models', 'random.gguf'),
      onPull: (file, completed, total) => progress.bar.update(`model ${file.split('/').pop()}`, completed, total ?? undefined),
      onPhase: (phase) => {
        progress.bar.stop();
        this.logToStderr(`          model: ${phase}`);
      },
    });
    progress.note('pull, load and warm up the model', performance.now() - startedMs);
    if (model.standInReason !== undefined) this.warn(`The default model cannot be had here, so a model with RANDOM WEIGHTS answers (noise, but a real engine). ${model.standInReason}`);
    return model;
  }

  /** Nobody waits for it: the first model answers meanwhile, and goes on doing so without the second. */
  private async secondModel(platform: Standalone, signal: AbortSignal): Promise<void> {
    try {
      const { name } = await deploySecondModel({ environment: operatorEnvironment(platform.settings), signal });
      this.logToStderr(`embeddings: ${name} is registered; it starts when it is first called.`);
    } catch (error) {
      if (!signal.aborted) this.logToStderr(`embeddings: the model cannot be had here. ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  private async smoke(platform: Standalone, apiKey: string, model: FirstModel | undefined, progress: Progress): Promise<unknown> {
    if (model === undefined) return this.error('--smoke needs a model: leave --no-model out.', { exit: EXIT.usage });
    const result = await askSmokeQuestions({ url: platform.url, apiKey, adminKey: platform.adminKey, model: model.name });
    for (const answer of result.answers) {
      this.log(`${answer.streamed ? 'streamed' : 'unstreamed'}: ${JSON.stringify(answer.text)}`);
      this.log(`  tokens: ${answer.promptTokens} prompt, ${answer.completionTokens} completion; TTFT ${answer.ttftMs === undefined ? '-' : `${answer.ttftMs.toFixed(0)} ms`}, total ${answer.totalMs.toFixed(0)} ms`);
      this.log(`  ClickHouse: ${answer.recorded === undefined ? 'no usage arrived' : `${answer.recorded.promptTokens} prompt, ${answer.recorded.completionTokens} completion, ${answer.recorded.requests} request`}`);
    }
    this.log(`start-up: ${Object.entries(progress.steps).map(([name, ms]) => `${name} ${(ms / MS_PER_SECOND).toFixed(1)} s`).join(', ')}`);
    this.log(result.agrees ? 'smoke test: ok' : 'smoke test: FAILED, usage does not agree');
    if (!result.agrees) process.exitCode = EXIT.failed;
    return { ...result, steps: progress.steps };
  }

  private explain(error: unknown): never {
    if (error instanceof InstanceBusyError || error instanceof PortTakenError || error instanceof RuntimeUnavailableError) this.error(error.message, { exit: EXIT.failed });
    throw error;
  }
}

interface Progress {
  readonly bar: ProgressLine;
  readonly note: (name: string, ms: number) => void;
  readonly steps: Record<string, number>;
  readonly startedMs: number;
  readonly stopping: Promise<unknown>;
}

function showInstall(bar: ProgressLine, progress: InstallProgress): void {
  if (progress.phase === 'downloading') bar.update(`installing ${progress.title}`, progress.bytes, progress.totalBytes);
  else if (progress.phase === 'ready') bar.stop();
}
