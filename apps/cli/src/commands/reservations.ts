import { Args, Flags } from '@oclif/core';
import { reservationBody, reservationList, reservationReleased } from '@penstock/contract-http';
import { ApiCommand } from '../api-command.js';
import { table } from '../terminal/table.js';

const money = (dollars: number | null | undefined): string => (dollars === null || dollars === undefined ? '-' : `$${dollars.toFixed(2)}/h`);

export class ReservationsCreate extends ApiCommand {
  static override summary = 'Set capacity aside for an endpoint, or be told what would fit.';
  static override examples = [
    '<%= config.bin %> reservations create my-model --rps 20 --class interactive --tolerates replica',
    '<%= config.bin %> reservations create my-model --replicas 2 --organisation org_01… --to 2026-12-31T00:00:00Z',
  ];
  static override args = { endpoint: Args.string({ required: true, description: 'an endpoint by id or by the name that requests carry' }) };
  static override flags = {
    rps: Flags.string({ description: 'requests per second' }),
    tps: Flags.string({ description: 'tokens per second, prompts and answers together' }),
    replicas: Flags.integer({ min: 1, description: 'a number of replicas instead of a rate' }),
    'prompt-tokens': Flags.integer({ min: 0, default: 1_000, description: 'of a typical request' }),
    'completion-tokens': Flags.integer({ min: 0, default: 200, description: 'of a typical answer' }),
    class: Flags.string({ options: ['interactive', 'standard', 'batch'], default: 'interactive', description: 'how soon callers need an answer' }),
    ttft: Flags.integer({ min: 1, description: 'milliseconds to the first token; those of the class when left out' }),
    itl: Flags.integer({ min: 1, description: 'milliseconds between tokens; those of the class when left out' }),
    priority: Flags.integer({ min: 0, max: 1_000, default: 500, description: 'higher ones are placed first and preempted last' }),
    gpu: Flags.string({ description: 'only this type, such as h100' }),
    tolerates: Flags.string({ options: ['nothing', 'replica', 'failure-domain'], default: 'nothing', description: 'what may fail while the rate is still carried' }),
    organisation: Flags.string({ description: 'the tenant that it is promised to' }),
    from: Flags.string({ description: 'ISO 8601 in UTC; now when left out' }),
    to: Flags.string({ description: 'ISO 8601 in UTC; no end when left out' }),
  };

  async run(): Promise<unknown> {
    const { args, flags } = await this.parse(ReservationsCreate);
    const made = await this.clientFor(flags).call('POST', '/admin/v1/reservations', reservationBody, {
      endpoint: args.endpoint, organisation_id: flags.organisation ?? null, requests_per_s: Number(flags.rps ?? 0), tokens_per_s: Number(flags.tps ?? 0), replicas: flags.replicas ?? 0,
      prompt_tokens: flags['prompt-tokens'], completion_tokens: flags['completion-tokens'], latency_class: flags.class, ttft_ms: flags.ttft ?? null, itl_ms: flags.itl ?? null, priority: flags.priority,
      gpu_type: flags.gpu ?? null, tolerates: flags.tolerates, from: flags.from ?? null, to: flags.to ?? null,
    });
    this.log(`Reservation ${made.reservationId} is made: ${made.reason}.`);
    if (made.capacity !== null) this.log(`${made.capacity.parts.reduce((sum, { count }) => sum + count, 0)} replicas on ${made.capacity.gpuType}, ${money(made.capacity.dollarsPerHour)} (${made.capacity.figuresFrom}).`);
    return made;
  }
}

export class ReservationsList extends ApiCommand {
  static override summary = 'List reservations, with what they keep and what stands.';
  static override flags = { ended: Flags.boolean({ default: false, description: 'also those that are over, and the refused ones with what would have fitted' }) };

  async run(): Promise<unknown> {
    const { flags } = await this.parse(ReservationsList);
    const { data } = await this.clientFor(flags).call('GET', `/admin/v1/reservations?include_ended=${flags.ended}`, reservationList);
    this.log(table(['RESERVATION', 'STATUS', 'ENDPOINT', 'FOR', 'PROMISED', 'PRIORITY', 'READY', 'FROM', 'TO', ''], data.map(({ reservationId, status, level, capacity, ready, floor, reason, wouldFit }) => [
      reservationId, status, level.endpointId, level.organisationId ?? 'everybody', promised(level), String(level.priority), `${ready} of ${floor}`, level.from, level.to ?? '-',
      status === 'refused' ? `${reason}${wouldFit.map(({ says }) => `; ${says}`).join('')}` : money(capacity?.dollarsPerHour),
    ])));
    return data;
  }
}

export class ReservationsRelease extends ApiCommand {
  static override summary = 'Release a reservation: its replicas become best effort.';
  static override args = { id: Args.string({ required: true, description: 'a reservation, as `reservations ls` lists it' }) };

  async run(): Promise<unknown> {
    const { args, flags } = await this.parse(ReservationsRelease);
    const released = await this.clientFor(flags).call('DELETE', `/admin/v1/reservations/${encodeURIComponent(args.id)}`, reservationReleased);
    this.log(`Reservation ${released.reservation_id} is released.`);
    return released;
  }
}

function promised({ requestsPerS, tokensPerS, replicas, latencyClass }: { readonly requestsPerS: number; readonly tokensPerS: number; readonly replicas: number; readonly latencyClass: string }): string {
  if (replicas > 0) return `${replicas} replicas`;
  return `${[requestsPerS > 0 ? `${requestsPerS} requests/s` : '', tokensPerS > 0 ? `${tokensPerS} tokens/s` : ''].filter((text) => text !== '').join(', ')} ${latencyClass}`;
}
