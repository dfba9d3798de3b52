import { timingProfile } from '@penstock/domain-engine-model';
import type { EngineHost, EngineWish, HostedEngine } from '@penstock/infra-simulated-fleet';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';

interface RunningSim {
  readonly url: string;
  close(): Promise<void>;
}

/** What the built engine-sim gives: an application that this one loads, as it would start a program. */
interface EngineSim {
  parseOptions(args: readonly string[]): unknown;
  startSim(options: unknown): Promise<RunningSim>;
}

interface Shared {
  readonly key: string;
  readonly sim: RunningSim;
  users: number;
}

export interface EngineSimHostOptions {
  /** The built `main.js` of the simulated engine. */
  readonly scriptPath: string;
  /** Engines that run at once; replicas of the same model share the least used one beyond that. */
  readonly enginesMax: number;
}

/** Engines of a simulated fleet in real time: engine-sim with the timing of the replica's hardware, in this process behind HTTP. */
export class EngineSimHost implements EngineHost {
  private readonly engines = new Set<Shared>();
  private opening = 0;
  private loaded: Promise<EngineSim> | undefined;

  constructor(private readonly options: EngineSimHostOptions) {}

  async open(wish: EngineWish): Promise<HostedEngine> {
    const key = JSON.stringify([wish.modelName, wish.timingModel, wish.slots, wish.contextTokens]);
    const isFull = this.engines.size + this.opening >= this.options.enginesMax;
    const [shared] = isFull ? [...this.engines].filter((engine) => engine.key === key).sort((one, other) => one.users - other.users) : [];
    if (isFull && shared === undefined) throw new Error(`${this.options.enginesMax} simulated engines run and none of them serves ${wish.modelName}: raise SIMULATED_ENGINES_MAX, or retire a model`);
    const engine = shared ?? (await this.begin(wish, key));
    engine.users += 1;
    let isOpen = true;
    return {
      url: engine.sim.url,
      close: async () => {
        if (!isOpen) return;
        isOpen = false;
        engine.users -= 1;
        if (engine.users > 0) return;
        this.engines.delete(engine);
        await engine.sim.close();
      },
    };
  }

  async close(): Promise<void> {
    const engines = [...this.engines];
    this.engines.clear();
    await Promise.all(engines.map((engine) => engine.sim.close()));
  }

  private async begin(wish: EngineWish, key: string): Promise<Shared> {
    this.opening += 1;
    try {
      this.loaded ??= loadEngineSim(this.options.scriptPath);
      const { parseOptions, startSim } = await this.loaded;
      const contextTokens = Math.min(wish.contextTokens, timingProfile(wish.timingModel).kvTokens);
      const sim = await startSim(parseOptions([
        '--model', wish.modelName, '--max-num-seqs', String(wish.slots), '--max-model-len', String(contextTokens), '--timing-model', wish.timingModel, '--time-scale', String(wish.timeScale),
      ]));
      const engine = { key, sim, users: 0 };
      this.engines.add(engine);
      return engine;
    } finally {
      this.opening -= 1;
    }
  }
}

async function loadEngineSim(scriptPath: string): Promise<EngineSim> {
  const folder = dirname(scriptPath);
  const load = (file: string): Promise<unknown> => import(pathToFileURL(join(folder, file)).href);
  try {
    return { ...((await load('options.js')) as Pick<EngineSim, 'parseOptions'>), ...((await load('server.js')) as Pick<EngineSim, 'startSim'>) };
  } catch (error) {
    throw new Error(`The simulated engine is not built: ${scriptPath} cannot be loaded. Run npm run build.`, { cause: error });
  }
}
