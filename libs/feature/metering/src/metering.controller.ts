import { getRequestUsage, getUsageTotals, queryUsage, verifyProjections } from '@penstock/contract-commands';
import { planBuckets, UsageStoreUnavailableError } from '@penstock/domain-usage';
import { answerCommand, ok, refused, type HandlerOutcome } from '@penstock/feature-shell';
import { Controller, Inject } from '@nestjs/common';
import { MessagePattern, Payload } from '@nestjs/microservices';
import type { MeteringPorts } from './metering-ports.js';
import { METERING_PORTS } from './tokens.js';
import { verifyUsageStore } from './verify-usage-store.js';

const verification = verifyProjections('metering');
const RETRY_AFTER_MS = 2_000;

@Controller()
export class MeteringController {
  constructor(@Inject(METERING_PORTS) private readonly ports: MeteringPorts) {}

  @MessagePattern(queryUsage.subject)
  usage(@Payload() payload: unknown) {
    return answerCommand(queryUsage, payload, this.ports.logger, async (query) => {
      const planned = planBuckets(query);
      if (planned.kind === 'refused') return refused(planned.refusal);
      return fromStore(() => this.ports.reports.buckets(query, planned.plan));
    });
  }

  @MessagePattern(getRequestUsage.subject)
  request(@Payload() payload: unknown) {
    return answerCommand(getRequestUsage, payload, this.ports.logger, ({ requestId, organisationId }) => fromStore(async () => ({ record: (await this.ports.reports.request(requestId, organisationId)) ?? null })));
  }

  @MessagePattern(getUsageTotals.subject)
  totals(@Payload() payload: unknown) {
    return answerCommand(getUsageTotals, payload, this.ports.logger, ({ organisationId }) => fromStore(() => this.ports.reports.totals(organisationId)));
  }

  @MessagePattern(verification.subject)
  verify(@Payload() payload: unknown) {
    return answerCommand(verification, payload, this.ports.logger, ({ swap }) => fromStore(async () => {
      const results = [await verifyUsageStore(this.ports, swap)];
      for (const control of this.ports.projections) results.push(await (swap ? control.rebuild() : control.verify()));
      return { projections: results.map((result) => ({ ...result, positions: { ...result.positions } })) };
    }));
  }
}

/** A store that is away is an expected outcome: the caller may ask again. */
async function fromStore<Value>(read: () => Promise<Value>): Promise<HandlerOutcome<Value>> {
  try {
    return ok(await read());
  } catch (error) {
    if (!(error instanceof UsageStoreUnavailableError)) throw error;
    return refused({ code: 'service_unavailable', message: `${error.message}. Recorded usage is safe in the event log; ask again shortly.`, retryAfterMs: RETRY_AFTER_MS });
  }
}
