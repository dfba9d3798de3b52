import type { DetectedMigInstance, MigDriver, MigPlace } from '@penstock/domain-serving';

/** GPUs whose MIG instances are only imagined. They outlive whoever drives them, as real ones do. */
export class SimulatedMigDriver implements MigDriver {
  readonly instances = new Map<string, DetectedMigInstance[]>();
  /** What the next steps do before they change anything; a rejection is the tool's refusal. */
  onStep: (step: { readonly kind: 'create' | 'destroy'; readonly device: string } & MigPlace) => Promise<void> = async () => undefined;
  /** Each step that was taken, in order: `create 3g.40gb:0 on GPU-1`. */
  readonly taken: string[] = [];
  private made = 0;

  async list(device: string): Promise<readonly DetectedMigInstance[]> {
    return [...(this.instances.get(device) ?? [])];
  }

  async create(device: string, { profile, start }: MigPlace): Promise<void> {
    await this.onStep({ kind: 'create', device, profile, start });
    this.made += 1;
    this.instances.set(device, [...(this.instances.get(device) ?? []), { profile, start, uuid: `MIG-${this.made}` }]);
    this.taken.push(`create ${profile}:${start} on ${device}`);
  }

  async destroy(device: string, { profile, start }: MigPlace): Promise<void> {
    await this.onStep({ kind: 'destroy', device, profile, start });
    this.instances.set(device, (this.instances.get(device) ?? []).filter((one) => one.profile !== profile || one.start !== start));
    this.taken.push(`destroy ${profile}:${start} on ${device}`);
  }
}
