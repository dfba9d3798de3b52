import { routes, type RouteContract } from '@penstock/contract-http';
import type { Attack } from './attack.js';
import { PathClient } from './raw-http.js';

/** Ways to write a path so that a check sees another one than the router does. */
function variantsOf(path: string): readonly string[] {
  const [, first = '', ...rest] = path.split('/');
  const tail = rest.join('/');
  const encoded = [...first].map((letter) => `%${letter.charCodeAt(0).toString(16)}`).join('');
  return [
    path, `/${path}`, `//${path}//`, `${path}/`, `${path}//`, `/${first}//${tail}`, `/${encoded}/${tail}`, `/${first.toUpperCase()}/${tail}`, `/${first}/./${tail}`, `/x/..${path}`, `/x/%2e%2e${path}`,
    `${path};x=1`, `/${first};x/${tail}`, `${path}%00`, `${path}%2f`, `${path}?`, `${path}?a=/health`, `${path}#x`, `${path}%20`, `/health/..${path}`, `/health%2f..${path}`, `/livez/../${first}/${tail}`,
    `http://127.0.0.1${path}`, `http://other.example${path}`, `\\${first}\\${tail}`, `/%5c${first}/${tail}`, `${path}.json`, `${path}%0d%0ax-penstock-internal:%20a`, `/${first}%2f${tail}`, path.replace(/^\/v1/, ''),
  ].filter((variant) => /^[\x21-\x7e]+$/.test(variant));
}

const concrete = (contract: RouteContract): string => contract.path.replaceAll(/\{\w+\}/g, 'id_1');

/** Callers that may not use a route, whatever it is called. */
function strangersTo(contract: RouteContract, attack: Attack): readonly (readonly [string, Readonly<Record<string, string>>])[] {
  const { attacker } = attack;
  const bearer = (key: string): Record<string, string> => ({ authorization: `Bearer ${key}` });
  return [
    ['no key', {}],
    ['an unknown key', bearer('sk-ps-0000000000000000000000000000000000000000000')],
    ['an SQL key', bearer(`x'OR'1'='1'--`)],
    ['its own hash', bearer('0'.repeat(64))],
    ['a basic scheme', { authorization: `Basic ${Buffer.from(`x:${attacker.key}`).toString('base64')}` }],
    ['an inner tenant header', { 'x-penstock-tenant': JSON.stringify({ organisationId: 'org_root', projectId: 'proj_root', keyId: 'key_root', batchId: null }) }],
    ['a guessed inner token', { 'x-penstock-internal': 'x'.repeat(43), 'x-penstock-tenant': JSON.stringify({ organisationId: 'org_root', projectId: 'proj_root', keyId: 'key_root', batchId: null }) }],
    ...(contract.access === 'admin' ? [['an inference key', bearer(attacker.key)] as const] : []),
    ...(contract.access === 'inference' ? [['an admin key', bearer(attacker.adminKey)] as const] : []),
  ];
}

const OVERRIDES: readonly Readonly<Record<string, string>>[] = [
  {}, { 'x-http-method-override': 'GET' }, { 'x-original-url': '/health' }, { 'x-rewrite-url': '/livez' }, { 'x-forwarded-for': '127.0.0.1', 'x-real-ip': '127.0.0.1' },
];

/** Every route, under every spelling of its path, for everybody who may not use it: no answer but a refusal. */
export async function pathAttacks(attack: Attack): Promise<void> {
  attack.say('path variants on every route');
  const client = new PathClient(attack.installation.settings.gatewayPort);
  for (const contract of routes) {
    const path = concrete(contract);
    const methods = contract.method === 'GET' ? ['GET', 'HEAD'] : [contract.method];
    for (const [who, headers] of strangersTo(contract, attack)) {
      await Promise.all(variantsOf(path).flatMap((variant) => methods.map(async (method) => {
        const { status } = await client.ask(method, variant, { ...headers, 'content-type': 'application/json' }, method === 'POST' ? '{}' : undefined);
        attack.attempt('paths', `${method} ${variant} with ${who}`, breachOf(status, variant, contract));
      })));
    }
    for (const override of OVERRIDES) {
      const { status } = await client.ask(contract.method, path, override);
      attack.attempt('paths', `${contract.method} ${path} with ${JSON.stringify(override)}`, breachOf(status, path, contract));
    }
  }
  client.close();
}

/** A spelling that leads to the health routes is theirs, and open to all, as are routes whose contract says so; a fault of ours counts as a hole. */
function breachOf(status: number, variant: string, contract: RouteContract): string | undefined {
  if (contract.access !== 'none' && status >= 200 && status < 400 && !/^\/(health|livez|readyz|metrics)(\?|$)/.test(variant)) return `status ${status}`;
  return status >= 500 ? `status ${status}` : undefined;
}
