/** What a key can be narrowed to. A scope ending in `.read` only looks. */
export const keyScopes = [
  'inference', 'models.read', 'models.write', 'files', 'batches', 'usage.read', 'tenants.read', 'tenants.write', 'keys.read', 'keys.write', 'limits.read', 'limits.write', 'platform.read', 'platform.write',
] as const;
export type KeyScope = (typeof keyScopes)[number];

/** The first prefix that fits decides; reading and changing may have scopes of their own. */
const SCOPES: readonly (readonly [prefix: string, read: KeyScope, write: KeyScope])[] = [
  ['/v1/files', 'files', 'files'],
  ['/v1/uploads', 'files', 'files'],
  ['/v1/batches', 'batches', 'batches'],
  ['/v1/organization/', 'usage.read', 'usage.read'],
  ['/v1/models', 'models.read', 'models.write'],
  ['/v1/requests', 'usage.read', 'usage.read'],
  ['/v1/', 'inference', 'inference'],
  ['/v2', 'models.read', 'inference'],
  ['/admin/v1/organisations', 'tenants.read', 'tenants.write'],
  ['/admin/v1/projects', 'tenants.read', 'tenants.write'],
  ['/admin/v1/keys', 'keys.read', 'keys.write'],
  ['/admin/v1/service-accounts', 'keys.read', 'keys.write'],
  ['/admin/v1/traffic-splits', 'models.read', 'models.write'],
  ['/admin/v1/limits', 'limits.read', 'limits.write'],
];

/** The scope that a key needs for a route. A route that no line names is the platform's own. */
export function scopeOf(route: { readonly method: string; readonly path: string }): KeyScope {
  const found = SCOPES.find(([prefix]) => route.path.startsWith(prefix));
  const isRead = route.method === 'GET';
  if (found === undefined) return isRead ? 'platform.read' : 'platform.write';
  return isRead ? found[1] : found[2];
}
