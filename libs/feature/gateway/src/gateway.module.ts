import { Module, type DynamicModule } from '@nestjs/common';
import type { KeyUses } from './access/key-uses.js';
import { CommitmentRoutes } from './admin/commitment-routes.js';
import { EventRoutes } from './admin/event-routes.js';
import { KeyRoutes } from './admin/key-routes.js';
import { LimitRoutes } from './admin/limit-routes.js';
import { NodeRoutes } from './admin/node-routes.js';
import { PlatformRoutes } from './admin/platform-routes.js';
import { ProgressRoutes } from './admin/progress-routes.js';
import { ServiceAccountRoutes } from './admin/service-account-routes.js';
import { TenantRoutes } from './admin/tenant-routes.js';
import { TrafficRoutes } from './admin/traffic-routes.js';
import { AsyncRoutes } from './api/async-routes.js';
import { BatchesRoutes } from './api/batches-routes.js';
import { DeployRoutes } from './api/deploy-routes.js';
import { ExplainRoutes } from './api/explain-routes.js';
import { FilesRoutes } from './api/files-routes.js';
import { ModelsRoutes } from './api/models-routes.js';
import { UsageRoutes } from './api/usage-routes.js';
import { CHAT_PARTS, type ChatParts } from './chat/chat-parts.js';
import { ChatRoutes } from './chat/chat-routes.js';
import { DocsRoutes } from './docs/docs-routes.js';
import type { RefusalBook } from './explain/refusal-book.js';
import type { GatewayPorts } from './gateway-ports.js';
import type { GatewayViews } from './gateway-views.js';
import { OpenStreams } from './http/open-streams.js';
import { CompletionRoutes } from './operations/completion-routes.js';
import { EmbeddingRoutes } from './operations/embedding-routes.js';
import { ModerationRoutes } from './operations/moderation-routes.js';
import { OperationDesk } from './operations/operation-desk.js';
import { RelevanceRoutes } from './operations/relevance-routes.js';
import { ResponseRoutes } from './operations/response-routes.js';
import { TokenizeRoutes } from './operations/tokenize-routes.js';
import type { StoredAnswers } from './stored/stored-answers.js';
import type { StoredExchange } from './stored/stored-exchange.js';
import { TensorRoutes } from './tensor/tensor-routes.js';
import { ModelDesk } from './frame/model-desk.js';
import { UploadRoutes } from './uploads/upload-routes.js';
import { GATEWAY_PORTS, GATEWAY_VIEWS, KEY_USES, REFUSAL_BOOK, STORED_ANSWERS, STORED_EXCHANGE } from './tokens.js';

/** What the gateway makes for its routes besides what every request works with. */
export interface GatewayExtras {
  readonly uses: KeyUses;
  readonly answers: StoredAnswers;
  readonly stored: StoredExchange;
  readonly refusals: RefusalBook;
}

/** Every group of routes. Together they serve the whole contract, or the gateway does not start. */
export const routeGroups = [ChatRoutes, TensorRoutes, CompletionRoutes, ResponseRoutes, EmbeddingRoutes, RelevanceRoutes, ModerationRoutes, TokenizeRoutes, ModelsRoutes, DeployRoutes, FilesRoutes, UploadRoutes, BatchesRoutes, UsageRoutes, ExplainRoutes, AsyncRoutes, DocsRoutes, TenantRoutes, KeyRoutes, ServiceAccountRoutes, LimitRoutes, TrafficRoutes, CommitmentRoutes, PlatformRoutes, NodeRoutes, ProgressRoutes, EventRoutes] as const;

@Module({})
export class GatewayModule {
  static with(ports: GatewayPorts, views: GatewayViews, chat: ChatParts, extras: GatewayExtras): DynamicModule {
    return {
      module: GatewayModule,
      providers: [
        { provide: GATEWAY_PORTS, useValue: ports },
        { provide: GATEWAY_VIEWS, useValue: views },
        { provide: CHAT_PARTS, useValue: chat },
        { provide: KEY_USES, useValue: extras.uses },
        { provide: STORED_ANSWERS, useValue: extras.answers },
        { provide: STORED_EXCHANGE, useValue: extras.stored },
        { provide: REFUSAL_BOOK, useValue: extras.refusals },
        OpenStreams,
        ModelDesk,
        OperationDesk,
        ...routeGroups,
      ],
    };
  }
}
