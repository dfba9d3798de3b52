import type { SequencedUsage } from './usage-sink.js';
import type { UsageSum } from './usage-reports.js';

type MutableSum = { -readonly [Field in keyof UsageSum]: UsageSum[Field] };

/** Adds usage up in memory as the stores do: the first record of a request id counts, later ones change nothing. */
export class UsageFold {
  private readonly seen = new Set<string>();
  private readonly byGroup = new Map<string, MutableSum>();

  /** Takes records in the order of their sequence. */
  add({ record }: SequencedUsage): void {
    if (this.seen.has(record.requestId)) return;
    this.seen.add(record.requestId);
    const sum = this.groupOf(record);
    sum.requests += 1;
    sum.promptTokens += record.promptTokens;
    sum.cachedTokens += record.cachedTokens;
    sum.completionTokens += record.completionTokens;
    sum.reasoningTokens += record.reasoningTokens;
  }

  /** In the order of organisation, project, key, model. */
  sums(): readonly UsageSum[] {
    return [...this.byGroup.values()].sort((left, right) => (groupKey(left) < groupKey(right) ? -1 : 1));
  }

  private groupOf({ organisationId, projectId, keyId, modelName }: SequencedUsage['record']): MutableSum {
    const group = { organisationId, projectId, keyId, modelName };
    const key = groupKey(group);
    const known = this.byGroup.get(key);
    if (known !== undefined) return known;
    const fresh = { ...group, requests: 0, promptTokens: 0, cachedTokens: 0, completionTokens: 0, reasoningTokens: 0 };
    this.byGroup.set(key, fresh);
    return fresh;
  }
}

/** Ids and model names hold no space, so it sorts before every character of theirs. */
function groupKey(group: Pick<UsageSum, 'organisationId' | 'projectId' | 'keyId' | 'modelName'>): string {
  return [group.organisationId, group.projectId, group.keyId, group.modelName].join(' ');
}
