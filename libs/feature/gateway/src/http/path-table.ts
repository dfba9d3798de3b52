import { routes, type RouteContract } from '@penstock/contract-http';

/** Fastify's form of a contract's path; a model name may hold slashes, so it takes the rest of the path. */
export function fastifyPath(path: string): string {
  return path.replace('{model}', '*').replaceAll(/\{(\w+)\}/g, ':$1');
}

/** A route under `/v1` is served without it too, as some clients leave it out. */
export function pathsOf(contract: RouteContract): readonly string[] {
  return [contract.path, ...(contract.aliases ?? [])].map(fastifyPath).flatMap((path) => (path.startsWith('/v1/') ? [path, path.slice('/v1'.length)] : [path]));
}

const matchers = routes.map((contract) => ({
  method: contract.method,
  pattern: new RegExp(`^(?:${pathsOf(contract).map((path) => path.replaceAll(/:\w+/g, '[^/]+').replace('*', '.+')).join('|')})$`),
}));

/** The methods that a path takes; none for a path that nobody serves. */
export function methodsOf(url: string): readonly string[] {
  const [path = ''] = url.split('?');
  const methods = matchers.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method);
  return [...new Set(methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])))];
}
