import { supersedesUsage } from './supersedes-usage.js';
import type { SequencedUsage } from './usage-sink.js';
import type { UsageSum } from './usage-reports.js';

type MutableSum = { -readonly [Field in keyof UsageSum]: UsageSum[Field] };

/** Adds usage up in memory as the stores do: each request id counts once, by the rule of {@link supersedesUsage}. */
export class UsageFold {
  private readonly counted = new Map<string, SequencedUsage['record']>();
  private readonly byGroup = new Map<string, MutableSum>();

  /** Takes records in the order of their sequence. */
  add({ record }: SequencedUsage): void {
    const earlier = this.counted.get(record.requestId);
    if (earlier !== undefined && !supersedesUsage(record, earlier)) return;
    if (earlier !== undefined) this.count(earlier, -1);
    this.counted.set(record.requestId, record);
    this.count(record, 1);
  }

  /** In the order of organisation, project, key, model. */
  sums(): readonly UsageSum[] {
    return [...this.byGroup.values()].filter((sum) => sum.requests > 0).sort((left, right) => (groupKey(left) < groupKey(right) ? -1 : 1));
  }

  private count(record: SequencedUsage['record'], sign: 1 | -1): void {
    const sum = this.groupOf(record);
    sum.requests += sign;
    sum.promptTokens += sign * record.promptTokens;
    sum.cachedTokens += sign * record.cachedTokens;
    sum.completionTokens += sign * record.completionTokens;
    sum.reasoningTokens += sign * record.reasoningTokens;
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
