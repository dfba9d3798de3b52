import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { scripted } from '../../platform/scripted-engine.js';
import { MODEL, type Attack } from './attack.js';

/** A word that stands for what a customer asked; it may be in no log and no event. */
const CANARY = 'canary-prompt-4f1d0c';

/** One organisation's things, asked for by another with the right ids: as if they did not exist. */
export async function tenants(attack: Attack): Promise<void> {
  attack.say('one tenant and the things of another');
  const { installation, victim, attacker } = attack;
  const form = new FormData();
  form.set('purpose', 'batch');
  form.set('file', new Blob([`{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"model":"${MODEL}","messages":[{"role":"user","content":"${scripted('answer', CANARY)}"}]}}\n`]), '../../../../etc/evil.jsonl');
  const file = (await (await fetch(`${installation.url}/v1/files`, { method: 'POST', headers: { authorization: `Bearer ${victim.key}` }, body: form })).json()) as { id: string; filename: string };
  attack.attempt('tenants', 'a file name that climbs', /[/\\]|\.\./.test(file.filename) ? file.filename : undefined);
  const batch = (await (await fetch(`${installation.url}/v1/batches`, { method: 'POST', headers: { authorization: `Bearer ${victim.key}`, 'content-type': 'application/json' }, body: JSON.stringify({ input_file_id: file.id, endpoint: '/v1/chat/completions', completion_window: '24h' }) })).json()) as { id: string };
  const asks: readonly (readonly [string, string, string, unknown?])[] = [
    ['GET', `/v1/files/${file.id}`, attacker.key], ['GET', `/v1/files/${file.id}/content`, attacker.key], ['DELETE', `/v1/files/${file.id}`, attacker.key], ['GET', `/v1/batches/${batch.id}`, attacker.key], ['POST', `/v1/batches/${batch.id}/cancel`, attacker.key],
    ['POST', '/v1/batches', attacker.key, { input_file_id: file.id, endpoint: '/v1/chat/completions', completion_window: '24h' }],
    ['DELETE', `/admin/v1/keys/${victim.keyId}`, attacker.adminKey], ['POST', '/admin/v1/keys', attacker.adminKey, { name: 'x', project_id: victim.projectId }], ['POST', '/admin/v1/organisations', attacker.adminKey, { name: 'x' }],
    ['POST', '/admin/v1/projects', attacker.adminKey, { organisation_id: victim.organisationId, name: 'x' }], ['POST', '/admin/v1/replay/verify', attacker.adminKey, {}], ['GET', '/admin/v1/events?context=access', attacker.adminKey], ['GET', '/admin/v1/dead-letters', attacker.adminKey], ['POST', '/admin/v1/dead-letters/redrive', attacker.adminKey, { ids: [1] }],
    ['POST', '/admin/v1/keys', attacker.adminKey, { name: 'x', role: 'root', organisation_id: victim.organisationId }],
  ];
  for (const [method, path, key, body] of asks) {
    const answer = await fetch(`${installation.url}${path}`, { method, headers: { authorization: `Bearer ${key}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) }, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
    const text = await answer.text();
    attack.attempt('tenants', `${method} ${path}`, answer.status < 400 || answer.status >= 500 ? `status ${answer.status}: ${text.slice(0, 100)}` : undefined);
  }
  for (const path of ['/v1/files', '/v1/batches', '/admin/v1/keys', '/admin/v1/organisations', '/admin/v1/projects', '/v1/organization/usage/completions?start_time=1']) {
    const text = await (await fetch(`${installation.url}${path}`, { headers: { authorization: `Bearer ${path.startsWith('/admin') ? attacker.adminKey : attacker.key}` } })).text();
    const leaked = [file.id, batch.id, victim.keyId, victim.organisationId, victim.projectId].filter((id) => text.includes(id));
    attack.attempt('tenants', `${path} lists only one's own`, leaked.length === 0 ? undefined : leaked.join(', '));
  }
  await cacheSalts(attack);
}

/** Two tenants never share a prefix in an engine's cache, and neither can choose the salt. */
async function cacheSalts(attack: Attack): Promise<void> {
  const salts: unknown[] = [];
  for (const { key } of [attack.victim, attack.attacker, attack.attacker]) {
    const marker = `salt-${salts.length}`;
    await (await fetch(`${attack.installation.url}/v1/chat/completions`, { method: 'POST', headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' }, body: JSON.stringify({ model: MODEL, messages: [{ role: 'user', content: scripted('answer', marker) }], max_tokens: 4, cache_salt: 'chosen' }) })).text();
    salts.push(attack.engine.seen.findLast((request) => request.marker === marker)?.body['cache_salt']);
  }
  const [victim, own, again] = salts;
  const isApart = typeof victim === 'string' && typeof own === 'string' && victim !== own && own === again && /^[A-Za-z0-9_-]{32,64}$/.test(own);
  attack.attempt('tenants', 'a cache of one\'s own', isApart ? undefined : salts.map(String).join(', '));
}

/** Keys, prompts and secrets that the drill has planted stand in no log file; and nothing of ours asked NATS for what it may not do. */
export async function traces(attack: Attack): Promise<void> {
  const { installation, attacker, victim } = attack;
  await (await fetch(`${installation.url}/v1/chat/completions`, { method: 'POST', headers: { authorization: `Bearer ${victim.key}`, 'content-type': 'application/json' }, body: JSON.stringify({ model: MODEL, messages: [{ role: 'user', content: scripted('answer', CANARY) }], max_tokens: 4 }) })).text();
  const folder = installation.instance.path('logs');
  const { secrets } = installation.instance;
  const planted = { 'an API key': attacker.key, 'an admin key': attacker.adminKey, 'another API key': victim.key, 'a prompt': CANARY, ...secrets };
  for (const name of await readdir(folder)) {
    const text = await readFile(join(folder, name), 'utf8');
    for (const [what, word] of Object.entries(planted)) attack.attempt('traces', `${what} in ${name}`, text.includes(word) ? 'it is there' : undefined);
    if (name !== 'nats.log') attack.attempt('traces', `${name} stays within its rights`, text.includes('Permissions Violation') ? (/.*Permissions Violation[^"]*"[^"]*"/.exec(text)?.[0].slice(-200) ?? 'violations') : undefined);
  }
}
