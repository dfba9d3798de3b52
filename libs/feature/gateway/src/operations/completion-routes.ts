import { Inject, Injectable } from '@nestjs/common';
import { checkCompletionRequest, contextFault } from '@penstock/domain-serving';
import { readDocument } from '../http/read-body.js';
import { RequestFault } from '../http/request-fault.js';
import { onRoute, type ANSWERED, type DirectCall, type RouteGroup } from '../http/route-call.js';
import { CompletionOperation } from './completion-operation.js';
import { OperationDesk, type OperationContext } from './operation-desk.js';

/** `POST /v1/completions`. */
@Injectable()
export class CompletionRoutes implements RouteGroup {
  readonly handlers = [onRoute('POST /v1/completions', (call) => this.complete(call), { readsBody: true, direct: (call) => this.complete(call) })];

  constructor(@Inject(OperationDesk) private readonly desk: OperationDesk) {}

  private async complete(call: DirectCall): Promise<typeof ANSWERED> {
    const document = readDocument(call.request.body);
    const checked = checkCompletionRequest(document);
    if (checked.kind === 'fault') throw new RequestFault(checked.fault);
    const { request } = checked;
    const make = (context: OperationContext): CompletionOperation => {
      const fault = contextFault({ max_tokens: request.max_tokens }, context.contextTokens);
      if (fault !== undefined) throw new RequestFault(fault);
      return new CompletionOperation(document, request, context);
    };
    return this.desk.serve(call, { name: 'text_completion', inputField: 'prompt', model: request.model, body: request, serviceTier: request.service_tier, make });
  }
}
