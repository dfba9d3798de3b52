import { Inject, Injectable } from '@nestjs/common';
import { queryUsage, usageGroup } from '@penstock/contract-commands';
import type { usageQuery } from '@penstock/contract-http';
import type { z } from 'zod';
import { askService } from '../ask-service.js';
import type { GatewayPorts } from '../gateway-ports.js';
import { RequestFault } from '../http/request-fault.js';
import { onRoute, type RouteCall, type RouteGroup } from '../http/route-call.js';
import { GATEWAY_PORTS } from '../tokens.js';

type UsageQuery = z.output<typeof usageQuery>;

/** Buckets of one page, by their width: how many when nothing is said, and at most. */
const LIMITS = { '1m': { fallback: 60, max: 1_440 }, '1h': { fallback: 24, max: 168 }, '1d': { fallback: 7, max: 31 } } as const;

/** `GET /v1/organization/usage/completions`. */
@Injectable()
export class UsageRoutes implements RouteGroup {
  readonly handlers = [onRoute<UsageQuery>('GET /v1/organization/usage/completions', (call) => this.page(call))];

  constructor(@Inject(GATEWAY_PORTS) private readonly ports: GatewayPorts) {}

  private async page(call: RouteCall<UsageQuery>): Promise<unknown> {
    const { query, principal } = call;
    const limits = LIMITS[query.bucket_width];
    const limit = query.limit ?? limits.fallback;
    if (limit > limits.max) throw new RequestFault({ code: 'integer_above_max_value', message: `Invalid 'limit': value above maximum. With buckets of ${query.bucket_width} expected a value <= ${limits.max}, but got ${limit} instead.`, param: 'limit' });
    const groupBy = (query.group_by ?? []).map((group) => {
      const parsed = usageGroup.safeParse(group);
      if (!parsed.success) throw new RequestFault({ code: 'invalid_value', message: `Invalid value for 'group_by': '${group.slice(0, 60)}'. Supported values are: ${usageGroup.options.join(', ')}.`, param: 'group_by' });
      return parsed.data;
    });
    const endTime = query.end_time ?? Math.ceil(this.ports.clock.now() / 1_000) + 1;
    if (endTime <= query.start_time) throw new RequestFault({ code: 'invalid_value', message: `'end_time' must be after 'start_time'.`, param: 'end_time' });
    const { buckets, nextPage } = await askService(this.ports, queryUsage, {
      organisationId: principal.organisationId, operation: 'completions', startTime: query.start_time, endTime, bucketWidth: query.bucket_width, groupBy,
      // An inference key sees what its project used.
      projectIds: principal.kind === 'inference' ? [principal.projectId] : [...(query.project_ids ?? [])],
      apiKeyIds: query.api_key_ids ?? [], models: query.models ?? [], ...(query.request_id === undefined ? {} : { requestId: query.request_id }), limit, page: query.page ?? null,
    }, call);
    return { object: 'page', data: buckets, has_more: nextPage !== null, next_page: nextPage };
  }
}
