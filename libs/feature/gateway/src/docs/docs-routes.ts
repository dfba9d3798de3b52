import { Injectable } from '@nestjs/common';
import { openApiDocument } from '@penstock/contract-http';
import { ANSWERED, onRoute, type RouteCall, type RouteGroup } from '../http/route-call.js';
import { renderDocsPage } from './docs-page.js';

/** `GET /docs`: the API to read, out of the same table that serves it. Nothing is loaded from anywhere else. */
@Injectable()
export class DocsRoutes implements RouteGroup {
  private readonly document = openApiDocument();
  private page: string | undefined;

  readonly handlers = [
    onRoute('GET /docs', (call) => this.show(call)),
    onRoute('GET /docs/openapi.json', () => Promise.resolve(this.document)),
  ];

  private async show({ reply }: RouteCall): Promise<typeof ANSWERED> {
    this.page ??= renderDocsPage(this.document);
    await reply.headers({ 'content-type': 'text/html; charset=utf-8', 'content-security-policy': `default-src 'none'; style-src 'unsafe-inline'`, 'cache-control': 'no-cache' }).send(this.page);
    return ANSWERED;
  }
}
