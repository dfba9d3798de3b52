import { asCatalogueEvent, usageRecordedV2 } from '@penstock/contract-events';
import type { RecordedEvent } from '@penstock/kernel';
import { Controller, Inject } from '@nestjs/common';
import { EventPattern, Payload } from '@nestjs/microservices';
import { USAGE_BATCHER } from './tokens.js';
import type { UsageBatcher } from './usage-batcher.js';

/** Takes usage from the event log into ClickHouse; the event is acknowledged once it is stored. */
@Controller()
export class UsageConsumer {
  constructor(@Inject(USAGE_BATCHER) private readonly batcher: UsageBatcher) {}

  @EventPattern(usageRecordedV2.type)
  async record(@Payload() recorded: RecordedEvent): Promise<void> {
    const event = asCatalogueEvent(recorded);
    if (event.type === 'usage.recorded.v2') await Promise.all(event.data.records.map((record) => this.batcher.add({ record, sequence: recorded.sequence })));
  }
}
